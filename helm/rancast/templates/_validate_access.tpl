{{/* Who may call: nobody is let in by mistake, and nobody whom the chart itself sends is kept out. */}}
{{- define "rancast.validateAccess" -}}
{{- $settings := .Values.settings | default dict -}}
{{- $asks := or .Values.access.tokenSecret .Values.access.clientCa (get $settings "token_file") (get $settings "tls_client_ca") -}}
{{- if not (or $asks .Values.access.open) -}}
{{- fail "whoever reaches the pod could call: give access.tokenSecret or access.clientCa, or say access.open: true" -}}
{{- end -}}
{{- $outside := or (ne .Values.service.type "ClusterIP") .Values.ingress.enabled .Values.httpRoute.enabled -}}
{{- if and $outside (not $asks) (not .Values.access.openBeyondCluster) -}}
{{- fail "an open service would be reached from outside the cluster: give access.tokenSecret or access.clientCa, or say access.openBeyondCluster: true" -}}
{{- end -}}
{{- if and .Values.access.clientCa (not .Values.access.tlsSecret) -}}
{{- fail "access.clientCa needs access.tlsSecret, which holds the CA under ca.crt" -}}
{{- end -}}
{{- range list "tls_key" "tls_client_ca" -}}
{{- if and (get $settings .) (not (get $settings "tls_certificate")) (not $.Values.access.tlsSecret) -}}
{{- fail (printf "settings.%s needs settings.tls_certificate" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (or .Values.access.clientCa (get $settings "tls_client_ca")) (not .Values.serviceMonitor.tlsConfig) -}}
{{- fail "clients need a certificate, and Prometheus has none: give serviceMonitor.tlsConfig" -}}
{{- end -}}
{{- include "rancast.validateOpenPaths" (list . $outside) -}}
{{- end -}}

{{/* (root, whether it is reached from outside the cluster) */}}
{{- define "rancast.validateOpenPaths" -}}
{{- $root := index . 0 -}}
{{- $access := $root.Values.access -}}
{{- $settings := $root.Values.settings | default dict -}}
{{- if hasKey $settings "open_paths" -}}
{{- $patterns := list -}}
{{- range splitList "," (include "rancast.settingValue" $settings.open_paths) -}}
{{- $patterns = append $patterns (trim .) -}}
{{- end -}}
{{- if and (has "/*" $patterns) (not $access.open) -}}
{{- fail "settings.open_paths: /* opens every path: name the paths, or say access.open: true" -}}
{{- end -}}
{{- if and (has "/*" $patterns) (index . 1) (not $access.openBeyondCluster) -}}
{{- fail "settings.open_paths: /* opens every path to callers from outside the cluster: name the paths, or say access.openBeyondCluster: true" -}}
{{- end -}}
{{- if or $access.tokenSecret (get $settings "token_file") -}}
{{- range $path, $who := include "rancast.askedWithoutToken" $root | fromYaml -}}
{{- $reached := has $path $patterns -}}
{{- range $patterns -}}
{{- $reached = or $reached (and (hasSuffix "*" .) (hasPrefix (trimSuffix "*" .) $path)) -}}
{{- end -}}
{{- if not $reached -}}
{{- fail (printf "settings.open_paths closes %s to %s, which has no token: add it there" $path $who) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Paths that somebody asks for who shows no token, and who that is. */}}
{{- define "rancast.askedWithoutToken" -}}
{{- $asked := dict -}}
{{- if and .Values.tests.enabled (not (get (include "rancast.settings" . | fromYaml) "tls_client_ca")) -}}
{{- $_ := set $asked "/healthz" "helm test (tests.enabled)" -}}
{{- end -}}
{{- range list "startup" "liveness" "readiness" -}}
{{- if get $.Values (printf "%sProbe" .) -}}
{{- $question := (include "rancast.probe" (list $ .) | fromYaml).httpGet -}}
{{- if and $question (not $question.httpHeaders) -}}
{{- $_ := set $asked $question.path (printf "the %s probe" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.serviceMonitor.authorization) -}}
{{- $_ := set $asked (include "rancast.metricsPath" .) "Prometheus, unless serviceMonitor.authorization is given" -}}
{{- end -}}
{{- toYaml $asked -}}
{{- end -}}
