{{- /* Reprieve's KubeSchedulerConfiguration. */ -}}
{{- define "reprieve.configuration" -}}
{{- if .Values.config -}}
{{ toYaml .Values.config }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{{- if not (include "reprieve.isExtender" .) }}
leaderElection: {leaderElect: true, resourceName: {{ include "reprieve.leaseName" . }}, resourceNamespace: {{ include "reprieve.leaseNamespace" . }}}
{{- end }}
profiles:
- schedulerName: {{ include "reprieve.schedulerName" . }}
  {{- if or .Values.plugins (not (include "reprieve.stockPlugins" .)) }}
  plugins:
    multiPoint:
      {{- if not (include "reprieve.stockPlugins" .) }}
      # kube-scheduler's own plugins have run before it asks.
      disabled:
      - name: "*"
      {{- end }}
      enabled:
      {{- if not (include "reprieve.stockPlugins" .) }}
      - name: PrioritySort
      - name: DefaultBinder
      {{- end }}
      {{- range .Values.plugins }}
      - name: {{ .name }}
        {{- with .weight }}
        weight: {{ . }}
        {{- end }}
      {{- end }}
  {{- end }}
  {{- $configured := list }}
  {{- range .Values.plugins }}
  {{- if .args }}{{ $configured = append $configured (dict "name" .name "args" .args) }}{{ end }}
  {{- end }}
  {{- with $configured }}
  pluginConfig:
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The entry of `extenders` in kube-scheduler's configuration. Arguments: root, url, and where the files of TLS are; no folder for HTTP. */ -}}
{{- define "reprieve.extender" -}}
- urlPrefix: {{ .url }}/extender
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  {{- if .root.Values.extender.bind }}
  bindVerb: bind
  {{- end }}
  weight: {{ .root.Values.extender.weight }}
  httpTimeout: {{ .root.Values.extender.httpTimeout }}
  nodeCacheCapable: {{ .root.Values.extender.nodeCacheCapable }}
  ignorable: {{ .root.Values.extender.ignorable }}
  enableHTTPS: {{ not (empty .files) }}
  {{- with .files }}
  tlsConfig:
    serverName: {{ include "reprieve.host" $.root }}
    caFile: {{ .ca }}
    certFile: {{ .cert }}
    keyFile: {{ .key }}
  {{- end }}
{{- end }}

{{- /* The KubeSchedulerConfiguration of the kube-scheduler in a sidecar's pod. */ -}}
{{- define "reprieve.kubeSchedulerConfiguration" -}}
{{- $tls := include "reprieve.tls" . -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: {{ include "reprieve.leaseName" . }}, resourceNamespace: {{ include "reprieve.leaseNamespace" . }}}
profiles:
- schedulerName: {{ include "reprieve.schedulerName" . }}
extenders:
{{- $folder := "/etc/reprieve/tls" }}
{{- $files := ternary (dict "ca" (printf "%s/ca.crt" $folder) "cert" (printf "%s/tls.crt" $folder) "key" (printf "%s/tls.key" $folder)) dict (not (empty $tls)) }}
{{- $scheme := empty $tls | ternary "http" "https" }}
{{ include "reprieve.extender" (dict "root" . "url" (printf "%s://127.0.0.1:%v" $scheme .Values.port) "files" $files) }}
{{- end }}
