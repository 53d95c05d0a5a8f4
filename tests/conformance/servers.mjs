// Writes the servers file of MCP Inspector: each toolset over HTTP and over stdio, configured the way a person would.
//
//   node servers.mjs <lab's JSON> <pvegate binary> <protocol era> <toolset>…

import fs from "node:fs";

const [labFile, pvegate, protocolEra, ...toolsets] = process.argv.slice(2);
const lab = JSON.parse(fs.readFileSync(labFile, "utf8"));
const headers = { Authorization: `Bearer ${lab.tokens.reader}` };
const serve = ["serve", "--stdio", "--clusters", lab.clusters_file];

const mcpServers = {
  http: { type: "http", url: lab.mcp_url, headers, protocolEra },
  "http-readonly": { type: "http", url: `${lab.mcp_url}/readonly`, headers, protocolEra },
  "http-no-token": { type: "http", url: lab.mcp_url, protocolEra },
  stdio: { command: pvegate, args: serve, protocolEra },
};
for (const toolset of toolsets) {
  mcpServers[`http-${toolset}`] = { type: "http", url: `${lab.mcp_url}/x/${toolset}`, headers, protocolEra };
  mcpServers[`stdio-${toolset}`] = { command: pvegate, args: [...serve, "--toolset", toolset], protocolEra };
}
console.log(JSON.stringify({ mcpServers }));
