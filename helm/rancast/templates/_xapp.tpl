{{/* Name of the xApp: the platform computes the names of its Services from it. */}}
{{- define "rancast.xappName" -}}
{{- .Values.xapp.name | default (include "rancast.fullname" . | trunc 42 | trimSuffix "-") -}}
{{- end -}}

{{/* Name of the Service for HTTP. */}}
{{- define "rancast.serviceName" -}}
{{- if eq .Values.profile "near-rt" -}}
service-ricxapp-{{ include "rancast.xappName" . }}-http
{{- else -}}
{{- include "rancast.fullname" . -}}
{{- end -}}
{{- end -}}

{{- define "rancast.rmrServiceName" -}}
service-ricxapp-{{ include "rancast.xappName" . }}-rmr
{{- end -}}

{{- define "rancast.descriptorConfigMap" -}}
configmap-ricxapp-{{ include "rancast.xappName" . }}-appconfig
{{- end -}}

{{/* Labels by which the platform's own charts name the pods of xApps. */}}
{{- define "rancast.xappLabels" -}}
app: ricxapp-{{ include "rancast.xappName" . }}
kubernetes_name: ricxapp_{{ include "rancast.xappName" . }}
{{- end -}}

{{- define "rancast.descriptorDirectory" -}}/opt/ric/config{{- end -}}

{{/* What the platform's frameworks and the message router look for in the environment. */}}
{{- define "rancast.xappEnvironment" -}}
- name: CONFIG_FILE
  value: {{ include "rancast.descriptorDirectory" . }}/config-file.json
- name: PLT_NAMESPACE
  value: {{ .Values.xapp.platformNamespace | quote }}
- name: RMR_RTG_SVC
  value: {{ .Values.xapp.rmrRoutePort | quote }}
- name: RMR_SRC_ID
  value: {{ printf "%s.%s" (include "rancast.rmrServiceName" .) (include "rancast.namespace" .) | quote }}
{{- end -}}

{{/* Where the platform's own Prometheus looks: at annotations of pods. */}}
{{- define "rancast.xappAnnotations" -}}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .Values.containerPort | quote }}
prometheus.io/path: /ric/v1/metrics
{{- if get (include "rancast.settings" . | fromYaml) "tls_certificate" }}
prometheus.io/scheme: https
{{- end }}
{{- end -}}

{{/* The descriptor: name, version, container, ports and probes, then what the values say. */}}
{{- define "rancast.descriptor" -}}
{{- $name := include "rancast.xappName" . -}}
{{- $image := dict "name" .Values.image.repository "tag" (.Values.image.tag | default .Chart.AppVersion) -}}
{{- /* The platform's schema takes a host there: what follows it is part of the name. */ -}}
{{- with (.Values.global).imageRegistry | default .Values.image.registry -}}
{{- $parts := splitn "/" 2 (trimSuffix "/" .) -}}
{{- $_ := set $image "registry" $parts._0 -}}
{{- with $parts._1 -}}{{- $_ := set $image "name" (printf "%s/%s" . $image.name) -}}{{- end -}}
{{- end -}}
{{- $port := int .Values.containerPort -}}
{{- $times := dict "initialDelaySeconds" 10 "periodSeconds" 15 -}}
{{- $own := dict
  "name" $name
  "xapp_name" $name
  "version" .Chart.AppVersion
  "containers" (list (dict "name" "rancast" "image" $image))
  "messaging" (dict "ports" (list
    (dict "name" "http" "container" "rancast" "port" $port "description" "REST API, probes and metrics")
    (dict "name" "rmrdata" "container" "rancast" "port" (int .Values.xapp.rmrDataPort) "description" "RMR messages" "txMessages" list "rxMessages" list "policies" list)
    (dict "name" "rmrroute" "container" "rancast" "port" (int .Values.xapp.rmrRoutePort) "description" "RMR routes")))
  "annotations" (include "rancast.xappAnnotations" . | fromYaml)
  "livenessProbe" (merge (dict "httpGet" (dict "path" "ric/v1/health/alive" "port" $port)) $times)
  "readinessProbe" (merge (dict "httpGet" (dict "path" "ric/v1/health/ready" "port" $port)) $times) -}}
{{- mergeOverwrite $own (deepCopy (.Values.xapp.descriptor | default dict)) | toPrettyJson -}}
{{- end -}}
