{{/* What would start and then lose data, hang or stand open is refused here, with the way out. */}}
{{- define "rancast.validate" -}}
{{- include "rancast.validateAccess" . -}}
{{- include "rancast.validateReplicas" . -}}
{{- include "rancast.validateDisruption" . -}}
{{- include "rancast.validateVolumes" . -}}
{{- include "rancast.validateProfile" . -}}
{{- include "rancast.validateSettings" . -}}
{{- include "rancast.validateRoutes" . -}}
{{- include "rancast.validateNames" . -}}
{{- end -}}

{{- define "rancast.validateReplicas" -}}
{{- $replicas := include "rancast.replicas" . | int -}}
{{- if .Values.autoscaling.enabled -}}
{{- if not (kindIs "invalid" .Values.replicaCount) -}}
{{- fail "autoscaling.enabled sets the replicas: leave replicaCount out, they would undo each other" -}}
{{- end -}}
{{- if ge (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) -}}
{{- fail (printf "autoscaling.minReplicas %d is not below maxReplicas %d: nothing would scale; raise maxReplicas, or set replicaCount instead" (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- end -}}
{{- if not (or .Values.autoscaling.targetCPUUtilizationPercentage .Values.autoscaling.targetMemoryUtilizationPercentage .Values.autoscaling.metrics) -}}
{{- fail "autoscaling.enabled has nothing to go by: give a target or autoscaling.metrics" -}}
{{- end -}}
{{- range $resource, $target := dict "cpu" .Values.autoscaling.targetCPUUtilizationPercentage "memory" .Values.autoscaling.targetMemoryUtilizationPercentage -}}
{{- if $target -}}
{{- /* A request that is left out is the limit, as the API server has it. */ -}}
{{- $all := $.Values.resources | default dict -}}
{{- if not (or (get ($all.requests | default dict) $resource) (get ($all.limits | default dict) $resource)) -}}
{{- fail (printf "autoscaling counts %s in percent of resources.requests.%s, which is missing: give it" $resource $resource) -}}
{{- end -}}
{{- range $.Values.extraContainers -}}
{{- $own := .resources | default dict -}}
{{- if not (or (get ($own.requests | default dict) $resource) (get ($own.limits | default dict) $resource)) -}}
{{- fail (printf "autoscaling counts %s in percent of what all containers request, and that of %s in extraContainers is missing: give it resources.requests.%s" $resource .name $resource) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $several := or .Values.autoscaling.enabled (gt $replicas 1) -}}
{{- if and $several .Values.persistence.enabled -}}
{{- fail "persistence.enabled needs replicaCount 1 and no autoscaling: the journal has a single writer" -}}
{{- end -}}
{{- if and $several (not .Values.separateStores) -}}
{{- fail "each replica has a store of its own, and an observation reaches one of them: keep replicaCount 1 without autoscaling, or say separateStores: true where callers send histories or all replicas read the same files" -}}
{{- end -}}
{{- if and $several (include "rancast.modelsOnOneNode" .) -}}
{{- fail "several replicas need models.accessModes with ReadWriteMany or ReadOnlyMany: a volume of one node holds the others up" -}}
{{- end -}}
{{- end -}}

{{- define "rancast.validateDisruption" -}}
{{- if ge (int .Values.minReadySeconds) (int (.Values.progressDeadlineSeconds | default 600)) -}}
{{- fail (printf "minReadySeconds %d does not end before progressDeadlineSeconds %d: every rollout would count as failed; raise the latter" (int .Values.minReadySeconds) (int (.Values.progressDeadlineSeconds | default 600))) -}}
{{- end -}}
{{- with .Values.podDisruptionBudget -}}
{{- if .enabled -}}
{{- $least := .minAvailable -}}
{{- $most := .maxUnavailable -}}
{{- $replicas := include "rancast.fewestReplicas" $ | int -}}
{{- if and (not (kindIs "invalid" $least)) (not (kindIs "invalid" $most)) -}}
{{- fail "podDisruptionBudget takes minAvailable or maxUnavailable, not both" -}}
{{- end -}}
{{- if and (not (kindIs "invalid" $most)) (eq (trimSuffix "%" (toString $most) | int) 0) -}}
{{- fail "podDisruptionBudget.maxUnavailable 0 blocks every drain of a node: allow 1 at least" -}}
{{- end -}}
{{- if not (kindIs "invalid" $least) -}}
{{- $stay := int $least -}}
{{- if hasSuffix "%" (toString $least) -}}
{{- $stay = divf (mulf (trimSuffix "%" (toString $least) | float64) (float64 $replicas)) 100 | ceil | int -}}
{{- end -}}
{{- if and (gt $stay 0) (ge $stay $replicas) -}}
{{- fail (printf "podDisruptionBudget.minAvailable %v blocks every drain of a node while there are %d replicas: lower it, or use maxUnavailable" $least $replicas) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "rancast.validateVolumes" -}}
{{- $rolls := and .Values.strategy (ne (dig "type" "RollingUpdate" .Values.strategy) "Recreate") -}}
{{- if and .Values.strategy (not $rolls) .Values.strategy.rollingUpdate -}}
{{- fail "strategy.rollingUpdate has no meaning beside type: Recreate: leave one of them out" -}}
{{- end -}}
{{- if and $rolls .Values.persistence.enabled -}}
{{- fail "strategy RollingUpdate runs two pods at a time, and persistence.enabled has a single writer: leave strategy out, or say type: Recreate" -}}
{{- end -}}
{{- if and $rolls (include "rancast.modelsOnOneNode" .) -}}
{{- fail "strategy RollingUpdate runs two pods at a time, and models.accessModes allow one node: leave strategy out, or add ReadWriteMany" -}}
{{- end -}}
{{- if and .Values.persistence.enabled .Values.models.enabled (eq (include "rancast.claimName" .) (include "rancast.modelsClaimName" .)) -}}
{{- fail "persistence.existingClaim and models.existingClaim are the same claim: journal and training would both write to it; give each its own" -}}
{{- end -}}
{{- if and .Values.models.enabled (not .Values.models.existingClaim) (eq (join "," .Values.models.accessModes) "ReadOnlyMany") -}}
{{- fail "models.accessModes ReadOnlyMany would make an empty volume that nobody can write to: add ReadWriteMany, or give models.existingClaim" -}}
{{- end -}}
{{- with .Values.retraining -}}
{{- if .enabled -}}
{{- if eq .concurrencyPolicy "Allow" -}}
{{- fail "retraining.concurrencyPolicy Allow lets two runs write the same checkpoint: use Forbid or Replace" -}}
{{- end -}}
{{- if not $.Values.models.enabled -}}
{{- fail "retraining.enabled has nowhere to put its checkpoint: say models.enabled: true" -}}
{{- end -}}
{{- if has "ReadWriteOncePod" $.Values.models.accessModes -}}
{{- fail "retraining writes to a volume that the service has mounted, and models.accessModes ReadWriteOncePod allow one pod: use ReadWriteMany, or ReadWriteOnce with retraining.onServiceNode" -}}
{{- end -}}
{{- if and (include "rancast.modelsOnOneNode" $) (not .onServiceNode) -}}
{{- fail "retraining writes to a volume that the service has mounted, and models.accessModes allow one node: add ReadWriteMany, or say retraining.onServiceNode: true" -}}
{{- end -}}
{{- if and (not (has "ReadWriteMany" $.Values.models.accessModes)) (has "ReadOnlyMany" $.Values.models.accessModes) (not (has "ReadWriteOnce" $.Values.models.accessModes)) -}}
{{- fail "retraining cannot write where models.accessModes are ReadOnlyMany: use ReadWriteMany" -}}
{{- end -}}
{{- if and (eq .command "finetune") (not .data.paths) -}}
{{- fail "retraining.command finetune needs retraining.data.paths" -}}
{{- end -}}
{{- $local := false -}}
{{- range .data.paths -}}{{- if or (eq . "/data") (hasPrefix "/data/" .) -}}{{- $local = true -}}{{- end -}}{{- end -}}
{{- $mounted := .data.existingClaim -}}
{{- range .extraVolumeMounts -}}{{- if or (eq .mountPath "/data") (hasPrefix "/data/" .mountPath) -}}{{- $mounted = true -}}{{- end -}}{{- end -}}
{{- if and $local (not $mounted) -}}
{{- fail "retraining.data.paths lie in /data, where nothing is mounted: give retraining.data.existingClaim, or other paths" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "rancast.validateProfile" -}}
{{- $settings := .Values.settings | default dict -}}
{{- $stated := get $settings "profile" -}}
{{- if and .Values.profile $stated (ne .Values.profile $stated) -}}
{{- fail (printf "profile %s and settings.profile %s contradict each other: leave settings.profile out" .Values.profile $stated) -}}
{{- end -}}
{{- $profile := .Values.profile | default ($stated | default "near-rt") -}}
{{- range $name := list "budget_default_ms" "budget_most_ms" -}}
{{- $budget := get $settings $name -}}
{{- if and (eq $profile "near-rt") $budget (gt (float64 $budget) 1000.0) (or (eq $.Values.profile "near-rt") (eq $stated "near-rt") (eq $name "budget_default_ms")) -}}
{{- fail (printf "settings.%s %v: a near-RT RIC closes its loops within 1000 ms; lower it, or serve longer loops with profile: non-rt" $name $budget) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.profile "near-rt" -}}
{{- $name := include "rancast.xappName" . -}}
{{- if contains "http" $name -}}
{{- fail (printf "xapp.name %s contains http, which the platform's subscription manager replaces by rmr wherever it stands: give xapp.name another" $name) -}}
{{- end -}}
{{- range list "name" "xapp_name" -}}
{{- $told := get ($.Values.xapp.descriptor | default dict) . -}}
{{- if and $told (ne $told $name) -}}
{{- fail (printf "xapp.descriptor.%s %v is not the xApp's name %s, from which the platform computes its Services: set xapp.name instead" . $told $name) -}}
{{- end -}}
{{- end -}}
{{- range list .Values.xapp.rmrDataPort .Values.xapp.rmrRoutePort -}}
{{- if eq (int .) (int $.Values.containerPort) -}}
{{- fail (printf "containerPort %d is a port of RMR as well: choose another" (int .)) -}}
{{- end -}}
{{- end -}}
{{- if eq (int .Values.xapp.rmrDataPort) (int .Values.xapp.rmrRoutePort) -}}
{{- fail "xapp.rmrDataPort and xapp.rmrRoutePort are the same: choose another" -}}
{{- end -}}
{{- if or .Values.environment.appId .Values.environment.smeDiscoveryEndpoint -}}
{{- fail "environment.appId and environment.smeDiscoveryEndpoint belong to an rApp: say profile: non-rt" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "rancast.validateSettings" -}}
{{- $settings := .Values.settings | default dict -}}
{{- if and .Values.compiled.enabled (eq (toString (get $settings "compiled")) "off") -}}
{{- fail "compiled.enabled makes code that settings.compiled: off has the service leave alone" -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- if and $.Values.compiled.enabled (regexMatch "^--checkpoint(=|$)" .) -}}
{{- fail "compiled.enabled makes code for settings.model_path, and extraArgs have another checkpoint served: give it there" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.models.enabled (get $settings "models_directory") -}}
{{- fail "models.enabled sets settings.models_directory: leave one of them out" -}}
{{- end -}}
{{- if and .Values.access.tokenSecret (get $settings "token_file") -}}
{{- fail "access.tokenSecret sets settings.token_file: leave one of them out" -}}
{{- end -}}
{{- range list "tls_certificate" "tls_key" "tls_client_ca" -}}
{{- if and $.Values.access.tlsSecret (get $settings .) -}}
{{- fail (printf "access.tlsSecret sets settings.%s: leave one of them out" .) -}}
{{- end -}}
{{- end -}}
{{- $drain := get $settings "drain_seconds" -}}
{{- if kindIs "string" $drain -}}{{- $drain = 20 -}}{{- end -}}
{{- if ge (float64 $drain) (float64 .Values.terminationGracePeriodSeconds) -}}
{{- fail (printf "settings.drain_seconds %v does not end before terminationGracePeriodSeconds %v: requests in flight would be cut off; raise the latter" $drain .Values.terminationGracePeriodSeconds) -}}
{{- end -}}
{{- end -}}

{{- define "rancast.validateRoutes" -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.enabled leads nowhere without ingress.hosts" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.enabled belongs to no gateway without httpRoute.parentRefs" -}}
{{- end -}}
{{- with .Values.service -}}
{{- range list "nodePort" "externalTrafficPolicy" -}}
{{- if and (get $.Values.service .) (eq $.Values.service.type "ClusterIP") -}}
{{- fail (printf "service.%s needs service.type NodePort or LoadBalancer" .) -}}
{{- end -}}
{{- end -}}
{{- range list "loadBalancerSourceRanges" "loadBalancerClass" -}}
{{- if and (get $.Values.service .) (ne $.Values.service.type "LoadBalancer") -}}
{{- fail (printf "service.%s needs service.type LoadBalancer" .) -}}
{{- end -}}
{{- end -}}
{{- if and (eq (.clusterIP | default "") "None") (ne .type "ClusterIP") -}}
{{- fail (printf "service.clusterIP None and service.type %s contradict each other: leave one of them out" .type) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.jobs.enabled (eq (include "rancast.serviceAccountName" .) "default") -}}
{{- fail "jobs.enabled would let every pod of the namespace that names no account run Jobs: say serviceAccount.create: true, or give serviceAccount.name" -}}
{{- end -}}
{{- end -}}
