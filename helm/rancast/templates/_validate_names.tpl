{{/* Names that Kubernetes would refuse, or that would stand in a list twice. */}}
{{- define "rancast.validateNames" -}}
{{- $service := include "rancast.serviceName" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $service) -}}
{{- fail (printf "a Service cannot be called %s: its name begins with a letter and has no dots; give %s" $service (ternary "xapp.name" "fullnameOverride" (eq .Values.profile "near-rt"))) -}}
{{- end -}}
{{- if eq .Values.profile "near-rt" -}}
{{- range $label, $_ := include "rancast.xappLabels" . | fromYaml -}}
{{- if hasKey ($.Values.podLabels | default dict) $label -}}
{{- fail (printf "podLabels.%s is what the platform's tools find the xApp by: leave it out" $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "rancast.validateVariables" (list . "extraEnv" .Values.extraEnv) -}}
{{- include "rancast.validateVariables" (list . "retraining.extraEnv" .Values.retraining.extraEnv) -}}
{{- end -}}

{{/* (root, name of the list, list): each variable once, and the service's in the letters by which the
schema knows those that other values set: the service itself takes them in any. */}}
{{- define "rancast.validateVariables" -}}
{{- $seen := list -}}
{{- $where := index . 1 -}}
{{- range include "rancast.render" (list (index . 0) (index . 2 | default list)) | fromYamlArray -}}
{{- if has .name $seen -}}
{{- fail (printf "%s names %s twice: leave one of them out" $where .name) -}}
{{- end -}}
{{- $seen = append $seen .name -}}
{{- if and (hasPrefix "RANCAST_" (upper .name)) (ne (upper .name) .name) -}}
{{- fail (printf "%s: write %s in capitals" $where .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
