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
{{- $places := include "rancast.ownPlaces" . | fromYaml -}}
{{- $service := $places.service -}}
{{- $training := $places.training -}}
{{- range list
  (list "extraVolumes" .Values.extraVolumes "name" (keys $service))
  (list "extraVolumeMounts" .Values.extraVolumeMounts "mountPath" (values $service))
  (list "extraContainers and extraInitContainers" (concat (.Values.extraContainers | default list) (.Values.extraInitContainers | default list)) "name" (list "rancast" "compile"))
  (list "retraining.extraVolumes" .Values.retraining.extraVolumes "name" (keys $training))
  (list "retraining.extraVolumeMounts" .Values.retraining.extraVolumeMounts "mountPath" (values $training))
  (list "retraining.extraInitContainers" .Values.retraining.extraInitContainers "name" (list "train")) -}}
{{- include "rancast.validateUnique" . -}}
{{- end -}}
{{- include "rancast.validateVariables" (list . "extraEnv" .Values.extraEnv) -}}
{{- include "rancast.validateVariables" (list . "retraining.extraEnv" .Values.retraining.extraEnv) -}}
{{- end -}}

{{/* (name of a list, the list, key, what the chart has under that key): Kubernetes takes each once. */}}
{{- define "rancast.validateUnique" -}}
{{- $where := index . 0 -}}
{{- $key := index . 2 -}}
{{- $taken := index . 3 -}}
{{- range index . 1 -}}
{{- $one := get . $key -}}
{{- if has $one $taken -}}
{{- fail (printf "%s: there is a %s %s already, the chart's or another of these: choose another" $where $key $one) -}}
{{- end -}}
{{- $taken = append $taken $one -}}
{{- end -}}
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

{{/* Volumes of the chart's own, and where each is mounted. */}}
{{- define "rancast.ownPlaces" -}}
{{- $both := dict "tmp" "/tmp" -}}
{{- if .Values.catalogues -}}{{- $_ := set $both "catalogues" (include "rancast.catalogueDirectory" .) -}}{{- end -}}
{{- if .Values.files -}}{{- $_ := set $both "files" (include "rancast.fileDirectory" .) -}}{{- end -}}
{{- if .Values.models.enabled -}}{{- $_ := set $both "models" (include "rancast.modelsDirectory" .) -}}{{- end -}}
{{- $service := merge (dict "journal" "/var/lib/rancast") $both -}}
{{- if .Values.compiled.enabled -}}{{- $_ := set $service "code" (include "rancast.cacheDirectory" .) -}}{{- end -}}
{{- if .Values.access.tokenSecret -}}{{- $_ := set $service "tokens" (include "rancast.tokenDirectory" .) -}}{{- end -}}
{{- if .Values.access.tlsSecret -}}{{- $_ := set $service "tls" (include "rancast.tlsDirectory" .) -}}{{- end -}}
{{- if eq .Values.profile "near-rt" -}}{{- $_ := set $service "descriptor" (include "rancast.descriptorDirectory" .) -}}{{- end -}}
{{- $training := deepCopy $both -}}
{{- if .Values.retraining.data.existingClaim -}}{{- $_ := set $training "data" "/data" -}}{{- end -}}
{{- if .Values.retraining.sharedMemory -}}{{- $_ := set $training "shared-memory" "/dev/shm" -}}{{- end -}}
{{- dict "service" $service "training" $training | toYaml -}}
{{- end -}}
