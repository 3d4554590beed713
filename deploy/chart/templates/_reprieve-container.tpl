{{- /* How the kubelet asks for a path: over the network where it can reach it, else from inside the container. */ -}}
{{- define "reprieve.probe" -}}
{{- if include "reprieve.tls" .root -}}
httpGet: {path: {{ .path }}, port: https, scheme: HTTPS}
{{- else if include "reprieve.hostNetwork" .root -}}
httpGet: {path: {{ .path }}, port: http, host: 127.0.0.1}
{{- else -}}
exec: {command: [python, -c, "from urllib.request import urlopen; urlopen('http://127.0.0.1:{{ .root.Values.port }}{{ .path }}', timeout=5)"]}
{{- end }}
{{- end }}

{{- define "reprieve.container" -}}
{{- $tls := include "reprieve.tls" . -}}
name: reprieve
image: {{ include "reprieve.image" (dict "image" .Values.image "version" .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
- serve
- --host={{ empty $tls | ternary "127.0.0.1" "0.0.0.0" }}
- --port={{ .Values.port }}
- --config=/etc/reprieve/config/config.yaml
{{- if $tls }}
- --tls-cert-file=/etc/reprieve/tls/tls.crt
- --tls-private-key-file=/etc/reprieve/tls/tls.key
{{- if eq .Values.mode "sidecar" }}
# The one who calls the verbs is in this pod, and has the pod's own certificate.
- --client-ca-file=/etc/reprieve/tls/ca.crt
- --client-allowed-names={{ include "reprieve.fullname" . }}
{{- else if include "reprieve.clientCA" . }}
- --client-ca-file=/etc/reprieve/clients/ca.crt
{{- if eq .Values.mode "service" }}
- --client-allowed-names={{ join "," .Values.tls.clientAllowedNames }}
{{- end }}
{{- end }}
- --allowed-hosts={{ include "reprieve.host" . }}
{{- end }}
{{- if .Values.extender.bind }}
- --serve-bind
{{- end }}
{{- if not (include "reprieve.isExtender" .) }}
- --schedule
{{- end }}
- --logging-format={{ .Values.logging.format }}
- --v={{ .Values.logging.v }}
{{- with .Values.featureGates }}
- --feature-gates={{ . }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- with .Values.env }}
env: {{- toYaml . | nindent 0 }}
{{- end }}
ports:
- {name: {{ empty $tls | ternary "http" "https" }}, containerPort: {{ .Values.port }}}
resources: {{- toYaml .Values.resources | nindent 2 }}
startupProbe:
  {{- include "reprieve.probe" (dict "root" . "path" "/livez") | nindent 2 }}
  periodSeconds: 2
  timeoutSeconds: 10
  failureThreshold: 60
readinessProbe:
  {{- include "reprieve.probe" (dict "root" . "path" "/readyz") | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 10
livenessProbe:
  {{- include "reprieve.probe" (dict "root" . "path" "/livez") | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 15
lifecycle: {preStop: {sleep: {seconds: {{ .Values.preStopSeconds }}}}}
securityContext: {{- include "reprieve.containerSecurity" . | nindent 2 }}
volumeMounts:
- {name: config, mountPath: /etc/reprieve/config, readOnly: true}
{{- if $tls }}
- {name: tls, mountPath: /etc/reprieve/tls, readOnly: true}
{{- end }}
{{- if include "reprieve.clientCA" . }}
- {name: clients, mountPath: /etc/reprieve/clients, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "reprieve.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
{{- end }}

{{- define "reprieve.kubeSchedulerContainer" -}}
name: kube-scheduler
image: {{ include "reprieve.image" (dict "image" .Values.kubeScheduler.image "version" (regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version)) }}
imagePullPolicy: {{ .Values.kubeScheduler.image.pullPolicy }}
command: [kube-scheduler]
args:
- --config=/etc/reprieve/config/kube-scheduler.yaml
- --secure-port=10259
- --logging-format={{ .Values.logging.format }}
- --v={{ .Values.logging.v }}
{{- range .Values.kubeScheduler.extraArgs }}
- {{ . | quote }}
{{- end }}
ports:
- {name: scheduler, containerPort: 10259}
resources: {{- toYaml .Values.kubeScheduler.resources | nindent 2 }}
startupProbe:
  httpGet: {path: /livez, port: scheduler, scheme: HTTPS}
  periodSeconds: 5
  timeoutSeconds: 15
  failureThreshold: 24
readinessProbe:
  httpGet: {path: /readyz, port: scheduler, scheme: HTTPS}
  timeoutSeconds: 15
livenessProbe:
  httpGet: {path: /livez, port: scheduler, scheme: HTTPS}
  timeoutSeconds: 15
securityContext: {{- include "reprieve.containerSecurity" . | nindent 2 }}
volumeMounts:
- {name: config, mountPath: /etc/reprieve/config, readOnly: true}
{{- if include "reprieve.tls" . }}
- {name: tls, mountPath: /etc/reprieve/tls, readOnly: true}
{{- end }}
{{- end }}
