{{/* Places inside the containers. The secret of tokens is mounted as a folder, so that a changed one arrives. */}}
{{- define "rancast.tokenDirectory" -}}/etc/rancast/tokens{{- end -}}
{{- define "rancast.tlsDirectory" -}}/etc/rancast/tls{{- end -}}
{{- define "rancast.catalogueDirectory" -}}/etc/rancast/catalogues{{- end -}}
{{- define "rancast.fileDirectory" -}}/etc/rancast/files{{- end -}}
{{- define "rancast.modelsDirectory" -}}/var/lib/rancast-models{{- end -}}
{{- define "rancast.cacheDirectory" -}}/var/cache/rancast{{- end -}}

{{/* A setting as the service reads it: text as it is, lists joined by commas. A number goes through
JSON, because it would otherwise be written as 1e+06 from a million on. */}}
{{- define "rancast.settingValue" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else if kindIs "slice" . -}}{{ join "," . }}{{- else -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{/* Settings by name: those of the values, and those that follow from other values. */}}
{{- define "rancast.settings" -}}
{{- $settings := deepCopy (.Values.settings | default dict) -}}
{{- if .Values.profile -}}{{- $_ := set $settings "profile" .Values.profile -}}{{- end -}}
{{- if and (eq .Values.profile "near-rt") (not (get $settings "budget_most_ms")) -}}
{{- $_ := set $settings "budget_most_ms" 1000 -}}
{{- end -}}
{{- if .Values.models.enabled -}}
{{- $_ := set $settings "models_directory" (include "rancast.modelsDirectory" .) -}}
{{- end -}}
{{- if .Values.access.tokenSecret -}}
{{- $_ := set $settings "token_file" (printf "%s/%s" (include "rancast.tokenDirectory" .) .Values.access.tokenSecretKey) -}}
{{- end -}}
{{- if .Values.access.tlsSecret -}}
{{- $_ := set $settings "tls_certificate" (printf "%s/tls.crt" (include "rancast.tlsDirectory" .)) -}}
{{- $_ := set $settings "tls_key" (printf "%s/tls.key" (include "rancast.tlsDirectory" .)) -}}
{{- if .Values.access.clientCa -}}
{{- $_ := set $settings "tls_client_ca" (printf "%s/ca.crt" (include "rancast.tlsDirectory" .)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.catalogues -}}
{{- $paths := list -}}
{{- range $name := keys .Values.catalogues | sortAlpha -}}
{{- $paths = append $paths (printf "%s/%s" (include "rancast.catalogueDirectory" $) $name) -}}
{{- end -}}
{{- with get $settings "catalogue_files" -}}
{{- $paths = append $paths (include "rancast.settingValue" .) -}}
{{- end -}}
{{- $_ := set $settings "catalogue_files" (join "," $paths) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* Variables that follow from the values, in a list below `env`. Libraries that insist on a home write
below HOME: the root file system is read-only. */}}
{{- define "rancast.ownVariables" -}}
env:
  - name: RANCAST_HOST
    value: "0.0.0.0"
  - name: RANCAST_OPEN_ACCESS
    value: {{ .Values.access.open | quote }}
  - name: RANCAST_PORT
    value: {{ .Values.containerPort | quote }}
  - name: RANCAST_JOURNAL_PATH
    value: /var/lib/rancast/journal.sqlite
  {{- if .Values.compiled.enabled }}
  - name: RANCAST_CACHE_DIR
    value: {{ include "rancast.cacheDirectory" . }}
  {{- end }}
  - name: HOME
    value: /tmp
  {{- range $name, $value := include "rancast.settings" . | fromYaml }}
  - name: RANCAST_{{ $name | upper }}
    value: {{ include "rancast.settingValue" $value | quote }}
  {{- end }}
  {{- if eq .Values.profile "near-rt" }}
  {{- include "rancast.xappEnvironment" . | nindent 2 }}
  {{- end }}
  {{- with .Values.environment.appId }}
  - name: APP_ID
    value: {{ . | quote }}
  {{- end }}
  {{- with .Values.environment.smeDiscoveryEndpoint }}
  - name: SME_DISCOVERY_ENDPOINT
    value: {{ . | quote }}
  {{- end }}
{{- end -}}

{{/* (root, own, more): the list `env`. A name stands there once, and the user's has the last word:
server-side apply refuses a list that holds it twice. */}}
{{- define "rancast.variables" -}}
{{- $more := include "rancast.render" (list (index . 0) (index . 2 | default list)) | fromYamlArray -}}
{{- $names := list -}}
{{- range $more -}}
{{- $names = append $names .name -}}
{{- /* Kubernetes takes texts only, and a number or a truth value is one as it is written. */ -}}
{{- if not (or (kindIs "string" .value) (kindIs "invalid" .value)) -}}{{- $_ := set . "value" (toJson .value) -}}{{- end -}}
{{- end -}}
{{- $variables := list -}}
{{- range index . 1 -}}
{{- if not (has .name $names) -}}{{- $variables = append $variables . -}}{{- end -}}
{{- end -}}
env:
  {{- toYaml (concat $variables $more) | nindent 2 }}
{{- end -}}

{{/* Environment of the service, and of the compiler, which has to see the same checkpoint. */}}
{{- define "rancast.environment" -}}
{{ include "rancast.variables" (list . (include "rancast.ownVariables" . | fromYaml).env .Values.extraEnv) }}
{{- if or .Values.extraEnvFrom (and (eq .Values.profile "near-rt") .Values.xapp.dbaasConfigMap) }}
envFrom:
  {{- if and (eq .Values.profile "near-rt") .Values.xapp.dbaasConfigMap }}
  - configMapRef:
      name: {{ .Values.xapp.dbaasConfigMap | quote }}
      optional: true
  {{- end }}
  {{- with .Values.extraEnvFrom }}
  {{- include "rancast.render" (list $ .) | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Mounts of what values.yaml says to the service and to training. */}}
{{- define "rancast.fileMounts" -}}
{{- if .Values.catalogues }}
- name: catalogues
  mountPath: {{ include "rancast.catalogueDirectory" . }}
  readOnly: true
{{- end }}
{{- if .Values.files }}
- name: files
  mountPath: {{ include "rancast.fileDirectory" . }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "rancast.fileVolumes" -}}
{{- if .Values.catalogues }}
- name: catalogues
  configMap:
    name: {{ include "rancast.suffixed" (list . "catalogues") | quote }}
{{- end }}
{{- if .Values.files }}
- name: files
  configMap:
    name: {{ include "rancast.suffixed" (list . "files") | quote }}
{{- end }}
{{- end -}}

{{/* (root, startup|liveness|readiness): a probe, with the question of profile and TLS where it has none. */}}
{{- define "rancast.probe" -}}
{{- $root := index . 0 -}}
{{- $which := index . 1 -}}
{{- $probe := deepCopy (get $root.Values (printf "%sProbe" $which)) -}}
{{- if not (or (hasKey $probe "httpGet") (hasKey $probe "exec") (hasKey $probe "tcpSocket") (hasKey $probe "grpc")) -}}
{{- $settings := include "rancast.settings" $root | fromYaml -}}
{{- if get $settings "tls_client_ca" -}}
{{- $_ := set $probe "tcpSocket" (dict "port" "http") -}}
{{- else -}}
{{- $path := ternary "/healthz" "/readyz" (eq $which "liveness") -}}
{{- if eq $root.Values.profile "near-rt" -}}
{{- $path = ternary "/ric/v1/health/alive" "/ric/v1/health/ready" (eq $which "liveness") -}}
{{- end -}}
{{- $question := dict "path" $path "port" "http" -}}
{{- if get $settings "tls_certificate" -}}{{- $_ := set $question "scheme" "HTTPS" -}}{{- end -}}
{{- $_ := set $probe "httpGet" $question -}}
{{- end -}}
{{- end -}}
{{- toYaml $probe -}}
{{- end -}}
