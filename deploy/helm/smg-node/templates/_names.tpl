{{- define "smg-node.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* At most 52 characters: a StatefulSet's pods get a label of its name and a hash. */}}
{{- define "smg-node.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "smg-node.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "smg-node.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "smg-node.selector" -}}
app.kubernetes.io/name: {{ include "smg-node.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "smg-node.labels" -}}
{{ include "smg-node.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "smg-node.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "smg-node.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "smg-node.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "smg-node.meshSecret" -}}
{{- default (printf "%s-mesh" (include "smg-node.fullname" .)) .Values.mesh.existingSecret }}
{{- end }}

{{- define "smg-node.storageSecret" -}}
{{- if .Values.storage.existingSecret }}
{{- .Values.storage.existingSecret }}
{{- else if .Values.storage.url }}
{{- printf "%s-storage" (include "smg-node.fullname" .) }}
{{- end }}
{{- end }}

{{/* The first nodes that vote on limits: more than half, so that no two groups of them can. */}}
{{- define "smg-node.expect" -}}
{{- $nodes := ternary .Values.autoscaling.minReplicas .Values.replicaCount .Values.autoscaling.enabled | int }}
{{- $nodes = max $nodes 1 }}
{{- default (add1 (div $nodes 2)) .Values.mesh.expect }}
{{- end }}

{{/* Where history is: a secret, because a database's URL has its password in it. */}}
{{- define "smg-node.storageEnv" -}}
{{- with include "smg-node.storageSecret" . }}
- name: SMG_STORAGE__URL
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.storage.secretKey }}
{{- end }}
{{- end }}

{{/* Scheme of the public API, as probes spell it. */}}
{{- define "smg-node.probeScheme" -}}
{{- if .Values.tls.existingSecret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* Scheme of the public API in a URL. */}}
{{- define "smg-node.scheme" -}}
{{- include "smg-node.probeScheme" . | lower }}
{{- end }}

{{/* Where operators reach a node from within its pod: in memory, so that nothing of it outlives the pod. */}}
{{- define "smg-node.adminSocket" -}}
unix:/tmp/admin.sock
{{- end }}

{{/* How a program in a pod asks its own node for what operators may see. */}}
{{- define "smg-node.ownUrl" -}}
{{- $listen := dig "http" "admin_listen" "" .Values.config }}
{{- if .Values.admin.socket -}}
--url {{ include "smg-node.adminSocket" . }}
{{- else if hasPrefix "unix:" $listen -}}
--url {{ $listen }}
{{- else if $listen -}}
--url {{ ternary "https" "http" (dig "http" "admin_tls" false .Values.config) }}://{{ regexReplaceAll "^(0\\.0\\.0\\.0|\\[::\\])?:" $listen "127.0.0.1:" }}
{{- else -}}
--url {{ include "smg-node.scheme" . }}://127.0.0.1:{{ .Values.ports.http }}
{{- if .Values.tls.existingSecret }} --ca-file /etc/smg-node/tls/{{ .Values.tls.certificateKey }}{{ with .Values.tls.host }} --server-name {{ . }}{{ end }}{{ end }}
{{- end }}
{{- end }}

{{/* Sources in Kubernetes by name, as JSON, wherever they are set. */}}
{{- define "smg-node.sources" -}}
{{- $configured := dig "discovery" "kubernetes" dict .Values.config | default dict }}
{{- merge (deepCopy .Values.discovery.kubernetes) $configured | toJson }}
{{- end }}

{{/* Whatever a node asks Kubernetes for, as JSON: sources by name, selections of pods by role, the pods of peers. */}}
{{- define "smg-node.watched" -}}
{{- $watched := include "smg-node.sources" . | fromJson }}
{{- $pods := dig "discovery" "pods" dict .Values.config }}
{{- if and $pods.enabled (ne ($pods.provider | default "kubernetes") "file") }}
{{- $watched = set $watched "pods by flags of others" (dict "selector" "any" "namespace" ($pods.namespace | default "*")) }}
{{- end }}
{{- $mesh := .Values.config.mesh | default dict }}
{{- if $mesh.kubernetes_selector }}
{{- $peers := dict "selector" $mesh.kubernetes_selector "namespace" ($mesh.kubernetes_namespace | default "") }}
{{- $watched = set $watched "peers of the mesh" $peers }}
{{- end }}
{{- toJson $watched }}
{{- end }}

{{/* The node's settings: `config`, and the sources below their name. */}}
{{- define "smg-node.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $sources := include "smg-node.sources" . | fromJson }}
{{- if $sources }}
{{- $config = set $config "discovery" (set ($config.discovery | default dict) "kubernetes" $sources) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* What sources in some namespaces ask for: rules of a role. */}}
{{- define "smg-node.discoveryRules" -}}
{{- $pods := false }}
{{- $slices := false }}
{{- range . }}
{{- if .service }}{{ $slices = true }}{{ else }}{{ $pods = true }}{{ end }}
{{- end }}
{{- if $pods }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- end }}
{{- if $slices }}
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
{{- end }}
{{- end }}
