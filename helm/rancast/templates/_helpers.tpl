{{- define "rancast.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of every object: the release's name, with the chart's behind it unless it is part of it. */}}
{{- define "rancast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that a Deployment may never change; free of versions. */}}
{{- define "rancast.selectorLabels" -}}
app.kubernetes.io/name: {{ include "rancast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rancast.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "rancast.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "rancast.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "rancast.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* [registry/]repository, then @digest where there is one, else :tag. */}}
{{- define "rancast.image" -}}
{{- with .Values.image -}}
{{- if .registry -}}{{ .registry | trimSuffix "/" }}/{{- end -}}
{{- .repository -}}
{{- if .digest -}}@{{ .digest }}{{- else -}}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The compiler's image: what it leaves open is the service's, and its tag ends in -compiler. */}}
{{- define "rancast.compilerImage" -}}
{{- $main := .Values.image -}}
{{- with .Values.compiled.image -}}
{{- $registry := .registry | default $main.registry -}}
{{- if $registry -}}{{ $registry | trimSuffix "/" }}/{{- end -}}
{{- .repository | default $main.repository -}}
{{- if .digest -}}@{{ .digest }}{{- else -}}:{{ .tag | default (printf "%s-compiler" ($main.tag | default $.Chart.AppVersion)) }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* A setting as the service reads it: text as it is, lists joined by commas. A number goes through
JSON, because it would otherwise be written as 1e+06 from a million on. */}}
{{- define "rancast.settingValue" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else if kindIs "slice" . -}}{{ join "," . }}{{- else -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{/* Environment of the service, and of the compiler, which has to see the same checkpoint. */}}
{{- define "rancast.environment" -}}
env:
  - name: RANCAST_HOST
    value: "0.0.0.0"
  - name: RANCAST_OPEN_ACCESS
    value: {{ .Values.access.open | quote }}
  {{- if .Values.access.tokenSecret }}
  - name: RANCAST_TOKEN_FILE
    value: {{ include "rancast.tokenDirectory" . }}/{{ .Values.access.tokenSecretKey }}
  {{- end }}
  - name: RANCAST_PORT
    value: {{ .Values.containerPort | quote }}
  - name: RANCAST_JOURNAL_PATH
    value: /var/lib/rancast/journal.sqlite
  {{- if .Values.compiled.enabled }}
  - name: RANCAST_CACHE_DIR
    value: {{ include "rancast.cacheDirectory" . }}
  {{- end }}
  # Libraries that insist on a home write below it; the root file system is read-only.
  - name: HOME
    value: /tmp
  {{- range $name, $value := .Values.settings }}
  - name: RANCAST_{{ $name | upper }}
    value: {{ include "rancast.settingValue" $value | quote }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Where the secret of tokens is mounted; as a folder, so that a changed secret arrives. */}}
{{- define "rancast.tokenDirectory" -}}
/etc/rancast/tokens
{{- end -}}

{{/* Where machine code lies in the image. */}}
{{- define "rancast.cacheDirectory" -}}
/var/cache/rancast
{{- end -}}

{{- define "rancast.claimName" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-journal" (include "rancast.fullname" . | trunc 55 | trimSuffix "-")) -}}
{{- end -}}

{{/* What would start and then lose data or hang is refused here. */}}
{{- define "rancast.validate" -}}
{{- if and .Values.persistence.enabled (gt (int .Values.replicaCount) 1) -}}
{{- fail "persistence.enabled needs replicaCount 1: the journal has a single writer" -}}
{{- end -}}
{{- if and .Values.compiled.enabled (eq (dig "compiled" "auto" (.Values.settings | default dict)) "off") -}}
{{- fail "compiled.enabled makes code that settings.compiled: off has the service leave alone" -}}
{{- end -}}
{{- end -}}
