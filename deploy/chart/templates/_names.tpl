{{- define "reprieve.fullname" -}}
{{- if contains "reprieve" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-reprieve" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "reprieve.selector" -}}
app.kubernetes.io/name: reprieve
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "reprieve.labels" -}}
{{ include "reprieve.selector" . }}
app.kubernetes.io/component: {{ .Values.mode }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "reprieve.image" -}}
{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .version }}{{ end }}
{{- end }}

{{- define "reprieve.host" -}}
{{ include "reprieve.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- /* What follows is "true" or empty. */ -}}

{{- define "reprieve.isExtender" -}}
{{- if has .Values.mode (list "sidecar" "service") }}true{{ end }}
{{- end }}

{{- define "reprieve.tls" -}}
{{- if or .Values.tls.secretName .Values.tls.certManager.enabled }}true{{ end }}
{{- end }}

{{- define "reprieve.hostNetwork" -}}
{{- if kindIs "bool" .Values.hostNetwork }}{{ if .Values.hostNetwork }}true{{ end }}{{ else if eq .Values.mode "scheduler" }}true{{ end }}
{{- end }}

{{- define "reprieve.stockPlugins" -}}
{{- if kindIs "bool" .Values.stockPlugins }}{{ if .Values.stockPlugins }}true{{ end }}{{ else if not (include "reprieve.isExtender" .) }}true{{ end }}
{{- end }}

{{- define "reprieve.tlsSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "reprieve.fullname" .)) }}
{{- end }}

{{- define "reprieve.schedulerName" -}}
{{ .Values.schedulerName | default (has .Values.mode (list "service" "scheduler") | ternary "default-scheduler" "reprieve") }}
{{- end }}

{{- define "reprieve.leaseName" -}}
{{ .Values.lease.name | default (eq .Values.mode "scheduler" | ternary "kube-scheduler" (include "reprieve.fullname" .)) }}
{{- end }}

{{- define "reprieve.leaseNamespace" -}}
{{ .Values.lease.namespace | default (eq .Values.mode "scheduler" | ternary "kube-system" .Release.Namespace) }}
{{- end }}

{{- /* The ConfigMap with the authority that signs client certificates; empty for none. In a sidecar's pod it is that of the pod's own certificate. */ -}}
{{- define "reprieve.clientCA" -}}
{{- if and (include "reprieve.tls" .) (ne .Values.mode "sidecar") -}}
{{ .Values.tls.clientCA.configMap | default (eq .Release.Namespace "kube-system" | ternary "extension-apiserver-authentication" "") }}
{{- end }}
{{- end }}
