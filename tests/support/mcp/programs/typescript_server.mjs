// A server of the TypeScript SDK 2: argument 1 is the folder of its packages.
import http from 'node:http';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const packages = `${process.argv[2]}/node_modules`;
const load = (path) => import(pathToFileURL(`${packages}/${path}`).href);
const { McpServer, createMcpHandler } = await load('@modelcontextprotocol/server/dist/index.mjs');
const { z } = await load('zod/index.js');

function tools() {
  const server = new McpServer({ name: 'typescript', version: '2' });
  const text = (value) => ({ content: [{ type: 'text', text: value }] });
  server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, ({ text: said }) => text(said));
  server.registerTool('big', { inputSchema: z.object({ n: z.number() }) }, ({ n }) => text('x'.repeat(n)));
  return server;
}

const handler = createMcpHandler(tools);
http
  .createServer(async (incoming, outgoing) => {
    const body = incoming.method === 'POST' ? Readable.toWeb(incoming) : undefined;
    const request = new Request(`http://127.0.0.1${incoming.url}`, {
      method: incoming.method,
      headers: Object.entries(incoming.headers),
      body,
      duplex: 'half',
    });
    const response = await handler.fetch(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) Readable.fromWeb(response.body).pipe(outgoing);
    else outgoing.end();
  })
  .listen(0);
