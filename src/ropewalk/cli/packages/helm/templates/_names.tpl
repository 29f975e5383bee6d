{{- define "ropewalk.name" -}}
{{- if contains "ropewalk" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-ropewalk" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "ropewalk.selector" -}}
app.kubernetes.io/name: ropewalk
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end }}

{{- define "ropewalk.etcdSelector" -}}
app.kubernetes.io/name: ropewalk
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: etcd
{{- end }}

{{- define "ropewalk.labels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "ropewalk.secretName" -}}
{{ .Values.secret.existing | default (printf "%s-secret" (include "ropewalk.name" .)) }}
{{- end }}

{{- define "ropewalk.scheme" -}}
{{ if .Values.tls.secretName }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{- define "ropewalk.protocol" -}}
{{ if .Values.login.enabled }}SASL_SSL{{ else if .Values.tls.secretName }}SSL{{ else }}PLAINTEXT{{ end }}
{{- end }}

{{- define "ropewalk.etcdEndpoints" -}}
{{- if .Values.etcd.endpoints }}
{{- join "," .Values.etcd.endpoints }}
{{- else if .Values.etcd.start.enabled }}
{{- $name := include "ropewalk.name" . }}
{{- $urls := list }}
{{- range $i := until (int .Values.etcd.start.members) }}
{{- $urls = append $urls (printf "http://%s-etcd-%d.%s-etcd.%s.svc:2379" $name $i $name $.Release.Namespace) }}
{{- end }}
{{- join "," $urls }}
{{- end }}
{{- end }}

{{- define "ropewalk.check" -}}
{{- if and .Values.login.enabled (not .Values.tls.secretName) }}{{ fail "login.enabled takes tls.secretName: a password never passes in the open" }}{{ end }}
{{- if and .Values.console.ingress.enabled (not .Values.login.enabled) }}{{ fail "console.ingress.enabled takes login.enabled and tls.secretName: outside the loopback a console asks for a login" }}{{ end }}
{{- if and .Values.console.ingress.enabled (not .Values.console.ingress.host) }}{{ fail "console.ingress.host is the name by which the console goes" }}{{ end }}
{{- if and .Values.external.enabled (ne (len .Values.external.hosts) (int .Values.nodes)) }}{{ fail (printf "external.hosts names %d hosts for %d nodes" (len .Values.external.hosts) (int .Values.nodes)) }}{{ end }}
{{- if and .Values.external.nodePorts (ne (len .Values.external.nodePorts) (int .Values.nodes)) }}{{ fail "external.nodePorts has one port for each node" }}{{ end }}
{{- end }}
