// Kubernetes: a Deployment of volunteers that prefers spot nodes, with a budget for disruptions and
// a Secret; a StatefulSet with a volume for the master.
#include <fmt/format.h>

#include <sstream>

#include "tools/launch/launch.hpp"

namespace gleaner {
namespace {

constexpr const char* kPodSecurity =
    "      automountServiceAccountToken: false\n"
    "      securityContext:\n"
    "        runAsNonRoot: true\n"
    "        runAsUser: 65534\n"
    "        runAsGroup: 65534\n"
    "        fsGroup: 65534\n"
    "        seccompProfile:\n"
    "          type: RuntimeDefault\n";

constexpr const char* kContainerSecurity =
    "          securityContext:\n"
    "            allowPrivilegeEscalation: false\n"
    "            readOnlyRootFilesystem: true\n"
    "            capabilities:\n"
    "              drop:\n"
    "                - ALL\n";

// The labels and taints by which the large providers mark nodes that may be taken away.
constexpr const char* kSpotNodes =
    "      affinity:\n"
    "        nodeAffinity:\n"
    "          preferredDuringSchedulingIgnoredDuringExecution:\n"
    "            - weight: 100\n"
    "              preference:\n"
    "                matchExpressions:\n"
    "                  - key: cloud.google.com/gke-spot\n"
    "                    operator: In\n"
    "                    values:\n"
    "                      - \"true\"\n"
    "            - weight: 100\n"
    "              preference:\n"
    "                matchExpressions:\n"
    "                  - key: eks.amazonaws.com/capacityType\n"
    "                    operator: In\n"
    "                    values:\n"
    "                      - SPOT\n"
    "            - weight: 100\n"
    "              preference:\n"
    "                matchExpressions:\n"
    "                  - key: kubernetes.azure.com/scalesetpriority\n"
    "                    operator: In\n"
    "                    values:\n"
    "                      - spot\n"
    "      tolerations:\n"
    "        - key: cloud.google.com/gke-spot\n"
    "          operator: Exists\n"
    "        - key: kubernetes.azure.com/scalesetpriority\n"
    "          operator: Exists\n";

// A volunteer takes its threads and its memory from these limits: the kernel tells them.
std::string resources(const Launch& launch) {
  const std::string both = fmt::format("              cpu: \"{}\"\n              memory: {}Mi\n",
                                       launch.cores, mebibytes(launch.memory_bytes));
  return "          resources:\n            requests:\n" + both + "            limits:\n" + both;
}

std::string indented(const std::string& text, const char* indent) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    result += line.empty() ? "\n" : indent + line + "\n";
  }
  return result;
}

// Kind, name, and the labels by which the parts find each other.
std::string head(const char* version, const char* kind, const char* name) {
  return fmt::format(
      "---\napiVersion: {}\nkind: {}\nmetadata:\n  name: {}\n  labels:\n"
      "    app.kubernetes.io/name: {}\n",
      version, kind, name, name);
}

std::string pods(const char* name) {
  return fmt::format(
      "  selector:\n    matchLabels:\n      app.kubernetes.io/name: {0}\n"
      "  template:\n    metadata:\n      labels:\n        app.kubernetes.io/name: {0}\n"
      "    spec:\n",
      name);
}

std::string container(const Launch& launch, const std::string& arguments) {
  return fmt::format(
      "      containers:\n"
      "        - name: gleaner\n"
      "          image: {}\n"
      "          command:\n"
      "            - {}\n"
      "          args:\n{}{}{}",
      launch.image, launch.program, indented(arguments, "            "), resources(launch),
      kContainerSecurity);
}

// Asks a volunteer over its socket, as a person would: it answers while it waits or rests too. A
// volunteer that gives way to all other programs may be slow to answer.
std::string probe(const char* kind, const Launch& launch, unsigned failures) {
  return fmt::format(
      "          {}:\n"
      "            exec:\n"
      "              command:\n"
      "                - {}\n"
      "                - status\n"
      "            initialDelaySeconds: 10\n"
      "            periodSeconds: 30\n"
      "            timeoutSeconds: 20\n"
      "            failureThreshold: {}\n",
      kind, launch.program, failures);
}

LaunchFiles master_files(const Launch& launch) {
  const char* const name = "gleaner-master";
  std::string text =
      "# The master of a Gleaner run. A new pod resumes the run from the volume of the old one.\n"
      "#   submit: kubectl apply -f master.yaml\n"
      "#   end:    kubectl delete -f master.yaml    (the volume of the store stays)\n";
  text += head("v1", "ConfigMap", name) + "data:\n  master.toml: |\n" +
          indented(launch.config_text, "    ");
  text += head("v1", "Service", name) +
          fmt::format(
              "spec:\n  selector:\n    app.kubernetes.io/name: {}\n  ports:\n    - name: join\n"
              "      port: {}\n",
              name, launch.port);
  text += head("apps/v1", "StatefulSet", name) +
          fmt::format("spec:\n  serviceName: {}\n  replicas: 1\n", name) + pods(name) +
          "      terminationGracePeriodSeconds: 60\n" + kPodSecurity +
          container(launch, "- --config\n- /etc/gleaner/master.toml\n") +
          fmt::format(
              "          ports:\n"
              "            - name: join\n"
              "              containerPort: {}\n"
              "          volumeMounts:\n"
              "            - name: store\n"
              "              mountPath: /var/lib/gleaner\n"
              "            - name: config\n"
              "              mountPath: /etc/gleaner\n"
              "              readOnly: true\n",
              launch.port);
  if (!launch.data_claim.empty()) {
    text +=
        "            - name: data\n              mountPath: /data\n              readOnly: true\n";
  }
  text += fmt::format(
      "      volumes:\n        - name: config\n          configMap:\n"
      "            name: {}\n",
      name);
  if (!launch.data_claim.empty()) {
    text += fmt::format(
        "        - name: data\n          persistentVolumeClaim:\n            claimName: {}\n"
        "            readOnly: true\n",
        launch.data_claim);
  }
  text += fmt::format(
      "  volumeClaimTemplates:\n    - metadata:\n        name: store\n      spec:\n"
      "        accessModes:\n          - ReadWriteOnce\n        resources:\n          requests:\n"
      "            storage: {}Mi\n",
      mebibytes(launch.store_bytes));
  return {{{"master.yaml", std::move(text)}}, {{"kubectl", "apply", "-f", "master.yaml"}}};
}

}  // namespace

LaunchFiles kubernetes_files(const Launch& launch) {
  if (launch.is_master) return master_files(launch);
  const char* const name = "gleaner-volunteer";
  std::string arguments = "- --leave-grace-s\n- \"10\"\n";
  if (launch.is_insecure) arguments += "- --insecure\n";
  std::string text = fmt::format(
      "# {} volunteers for a Gleaner run. Its line is in the Secret gleaner-line, made by\n"
      "#   kubectl create secret generic gleaner-line --from-file=line=FILE\n"
      "#   submit: kubectl apply -f volunteers.yaml\n"
      "#   end:    kubectl delete -f volunteers.yaml\n",
      launch.volunteers);
  text += head("apps/v1", "Deployment", name) +
          fmt::format("spec:\n  replicas: {}\n", launch.volunteers) + pods(name) +
          "      terminationGracePeriodSeconds: 15\n" + kPodSecurity + kSpotNodes +
          container(launch, arguments) +
          "          env:\n"
          "            - name: GLEANER_LINE_FILE\n"
          "              value: /run/secrets/gleaner/line\n"
          "            - name: RUNTIME_DIRECTORY\n"
          "              value: /run/gleaner\n" +
          probe("readinessProbe", launch, 2) + probe("livenessProbe", launch, 10) +
          "          volumeMounts:\n"
          "            - name: runtime\n"
          "              mountPath: /run/gleaner\n"
          "            - name: line\n"
          "              mountPath: /run/secrets/gleaner\n"
          "              readOnly: true\n"
          "      volumes:\n"
          "        - name: runtime\n"
          "          emptyDir:\n"
          "            medium: Memory\n"
          "            sizeLimit: 1Mi\n"
          "        - name: line\n"
          "          secret:\n"
          "            secretName: gleaner-line\n"
          "            defaultMode: 288  # 0440\n";
  text += head("policy/v1", "PodDisruptionBudget", name) +
          fmt::format(
              "spec:\n  maxUnavailable: 50%\n  selector:\n    matchLabels:\n"
              "      app.kubernetes.io/name: {}\n",
              name);
  const std::string secret = head("v1", "Secret", "gleaner-line") +
                             "type: Opaque\nstringData:\n  line: \"" + launch.line + "\"\n";
  return {{{"volunteers.yaml", std::move(text)}, {"secret.yaml", secret, true}},
          {{"kubectl", "apply", "-f", "secret.yaml", "-f", "volunteers.yaml"}}};
}

}  // namespace gleaner
