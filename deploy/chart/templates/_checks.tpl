{{- /* What the values ask for and cannot have, in words. */ -}}
{{- define "reprieve.checks" -}}
{{- if and .Values.tls.secretName .Values.tls.certManager.enabled }}
{{- fail "tls: give secretName or certManager.enabled, not both" }}
{{- end }}
{{- if and (eq .Values.mode "service") (not (include "reprieve.tls" .)) (not (include "reprieve.hostNetwork" .)) }}
{{- fail "mode service needs a certificate, because kube-scheduler calls over the network: set tls.certManager.enabled=true, or tls.secretName to a Secret with tls.crt, tls.key and ca.crt; or hostNetwork=true for a kube-scheduler on the same node" }}
{{- end }}
{{- if and (eq .Values.mode "service") (include "reprieve.tls" .) (not (include "reprieve.clientCA" .)) }}
{{- fail "mode service outside kube-system: set tls.clientCA.configMap to a ConfigMap with the authority that signs kube-scheduler's client certificate (kube-system has it as extension-apiserver-authentication), or install into kube-system" }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled (not (include "reprieve.tls" .)) }}
{{- fail "metrics.serviceMonitor needs a certificate: without one Reprieve listens on loopback only. Set tls.certManager.enabled=true or tls.secretName" }}
{{- end }}
{{- if and .Values.extender.bind (ne .Values.mode "service") }}
{{- fail "extender.bind is for mode service" }}
{{- end }}
{{- if and .Values.nodeName (gt (int .Values.replicas) 1) }}
{{- fail "nodeName runs all replicas on one node: set replicas to 1" }}
{{- end }}
{{- end }}
