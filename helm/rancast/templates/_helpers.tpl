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

{{/* (root, suffix[, most letters]): that name with a suffix, cut so that all of the suffix stays. */}}
{{- define "rancast.suffixed" -}}
{{- $suffix := index . 1 -}}
{{- $most := 63 -}}
{{- if gt (len .) 2 -}}{{- $most = index . 2 -}}{{- end -}}
{{- $room := sub (sub $most (len $suffix)) 1 | int -}}
{{- printf "%s-%s" (include "rancast.fullname" (index . 0) | trunc $room | trimSuffix "-") $suffix -}}
{{- end -}}

{{- define "rancast.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{/* (root, value): a value out of values.yaml as YAML, with the templates in it rendered. */}}
{{- define "rancast.render" -}}
{{- tpl (toYaml (index . 1)) (index . 0) -}}
{{- end -}}

{{/* Labels that a Deployment may never change, free of versions. The component keeps the pods of the
service apart from those of training and tests. */}}
{{- define "rancast.selectorLabels" -}}
app.kubernetes.io/name: {{ include "rancast.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: service
{{- end -}}

{{/* (root, component[, more labels]): labels of a pod. */}}
{{- define "rancast.podLabels" -}}
{{- $root := index . 0 -}}
{{- $labels := dict
  "app.kubernetes.io/name" (include "rancast.name" $root)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/component" (index . 1)
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- if and (eq (index . 1) "service") (eq $root.Values.profile "near-rt") -}}
{{- $labels = merge $labels (include "rancast.xappLabels" $root | fromYaml) -}}
{{- end -}}
{{- $labels = mergeOverwrite (deepCopy ($root.Values.commonLabels | default dict)) $labels -}}
{{- if gt (len .) 2 -}}{{- $labels = mergeOverwrite $labels (tpl (toYaml (index . 2 | default dict)) $root | fromYaml) -}}{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{/* (root, kind of object, where it is meant for[, more labels[, annotations[, namespace]]]): its metadata
below the name. */}}
{{- define "rancast.metadata" -}}
{{- $root := index . 0 -}}
{{- $labels := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/name" (include "rancast.name" $root)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/component" (index . 1)
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $labels = mergeOverwrite (deepCopy ($root.Values.commonLabels | default dict)) $labels -}}
{{- $annotations := deepCopy ($root.Values.commonAnnotations | default dict) -}}
{{- $namespace := include "rancast.namespace" $root -}}
{{- if gt (len .) 2 -}}{{- $labels = mergeOverwrite $labels (tpl (toYaml (index . 2 | default dict)) $root | fromYaml) -}}{{- end -}}
{{- if gt (len .) 3 -}}{{- $annotations = mergeOverwrite $annotations (tpl (toYaml (index . 3 | default dict)) $root | fromYaml) -}}{{- end -}}
{{- if gt (len .) 4 -}}{{- $namespace = index . 4 | default $namespace -}}{{- end -}}
namespace: {{ $namespace | quote }}
labels:
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "rancast.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "rancast.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "rancast.mountsToken" -}}
{{- or .Values.automountServiceAccountToken .Values.jobs.enabled -}}
{{- end -}}

{{- define "rancast.image" -}}
{{- $registry := (.Values.global).imageRegistry | default .Values.image.registry -}}
{{- include "rancast.imageName" (list . (merge (dict "registry" $registry) .Values.image) "") -}}
{{- end -}}

{{/* (root, image, what stands behind the service's tag): [registry/]repository, then @digest where there is
one, else :tag. What the image leaves open is the service's, but for its digest, which is of one image. */}}
{{- define "rancast.imageName" -}}
{{- $root := index . 0 -}}
{{- $main := $root.Values.image -}}
{{- $behind := index . 2 -}}
{{- with index . 1 -}}
{{- $registry := .registry | default (($root.Values.global).imageRegistry | default $main.registry) -}}
{{- if $registry -}}{{ $registry | trimSuffix "/" }}/{{- end -}}
{{- .repository | default $main.repository -}}
{{- if .digest -}}@{{ .digest }}{{- else -}}:{{ .tag | default (printf "%s%s" ($main.tag | default $root.Chart.AppVersion) $behind) }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The image of training: the service's, unless something of another is said. */}}
{{- define "rancast.trainingImage" -}}
{{- $own := .Values.retraining.image | default dict -}}
{{- if compact (values $own) -}}
{{- include "rancast.imageName" (list . $own "") -}}
{{- else -}}
{{- include "rancast.image" . -}}
{{- end -}}
{{- end -}}

{{- define "rancast.imagePullSecrets" -}}
{{- $secrets := list -}}
{{- range concat (.Values.imagePullSecrets | default list) ((.Values.global).imagePullSecrets | default list) -}}
{{- $secrets = append $secrets (ternary (dict "name" .) . (kindIs "string" .)) -}}
{{- end -}}
{{- with $secrets | uniq -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Replicas of the Deployment where nothing scales it. */}}
{{- define "rancast.replicas" -}}
{{- if kindIs "invalid" .Values.replicaCount -}}1{{- else -}}{{ .Values.replicaCount | int }}{{- end -}}
{{- end -}}

{{/* Fewest replicas that there are. */}}
{{- define "rancast.fewestReplicas" -}}
{{- if .Values.autoscaling.enabled -}}{{ .Values.autoscaling.minReplicas | int }}{{- else -}}{{ include "rancast.replicas" . }}{{- end -}}
{{- end -}}

{{/* How a pod finds hosts by name. */}}
{{- define "rancast.nameResolution" -}}
{{- with .Values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.dnsPolicy }}
dnsPolicy: {{ . | quote }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The source of a volume that goes with its pod, bounded where a bound is given. */}}
{{- define "rancast.emptyDirectory" -}}
{{- toYaml (dict "emptyDir" (ternary (dict "sizeLimit" .) dict (not (empty .)))) -}}
{{- end -}}

{{- define "rancast.metricsPath" -}}
{{- ternary "/ric/v1/metrics" "/metrics" (eq .Values.profile "near-rt") -}}
{{- end -}}

{{/* Whether the models volume can be mounted by one node only; empty means it cannot be said to be. */}}
{{- define "rancast.modelsOnOneNode" -}}
{{- $modes := .Values.models.accessModes -}}
{{- if and .Values.models.enabled (not (or (has "ReadWriteMany" $modes) (has "ReadOnlyMany" $modes))) -}}true{{- end -}}
{{- end -}}

{{- define "rancast.claimName" -}}
{{- .Values.persistence.existingClaim | default (include "rancast.suffixed" (list . "journal")) -}}
{{- end -}}

{{- define "rancast.modelsClaimName" -}}
{{- .Values.models.existingClaim | default (include "rancast.suffixed" (list . "models")) -}}
{{- end -}}
