{{/* The init container that makes machine code. Without compiled code the service is slower, and that is
no reason to keep it waiting. A compiler that is killed takes its container along: what it leaves in the
pod's /tmp ends the next try at once. */}}
{{- define "rancast.compiler" -}}
- name: compile
  image: {{ include "rancast.imageName" (list . .Values.compiled.image "-compiler") | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- with .Values.securityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  command:
    - sh
    - -c
    - |
      begun=/tmp/rancast-compile-begun
      if [ -e "$begun" ]; then
        echo "compiling was cut short, for lack of memory perhaps; starting without" >&2
        exit 0
      fi
      touch "$begun"
      timeout {{ .Values.compiled.timeoutSeconds | int }} rancast compile \
        --precision "${RANCAST_PRECISION:-auto}" ${RANCAST_MODEL_PATH:+"$RANCAST_MODEL_PATH"} \
        || echo "compiling ended with status $?; starting without" >&2
      rm -f "$begun"
  {{- include "rancast.environment" . | nindent 2 }}
  {{- with .Values.compiled.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts:
    - name: code
      mountPath: {{ include "rancast.cacheDirectory" . }}
    - name: tmp
      mountPath: /tmp
    {{- with include "rancast.fileMounts" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- if .Values.models.enabled }}
    - name: models
      mountPath: {{ include "rancast.modelsDirectory" . }}
      readOnly: true
    {{- end }}
    {{- with .Values.extraVolumeMounts }}
    {{- include "rancast.render" (list $ .) | nindent 4 }}
    {{- end }}
{{- end -}}
