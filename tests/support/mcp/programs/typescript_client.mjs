// A client of the TypeScript SDK 1, by HTTP: arguments are the folder of its packages, a URL and a tool's name.
import { pathToFileURL } from 'node:url';

const [folder, url, tool, values] = process.argv.slice(2);
const sdk = `${folder}/node_modules/@modelcontextprotocol/sdk/dist/esm/client`;
const load = (path) => import(pathToFileURL(`${sdk}/${path}`).href);
const { Client } = await load('index.js');
const { StreamableHTTPClientTransport } = await load('streamableHttp.js');

const steps = [];
const client = new Client({ name: 'judge', version: '1' }, { capabilities: { elicitation: {} } });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const tools = (await client.listTools()).tools.map((one) => one.name);
const told = { revision: transport.protocolVersion, session: transport.sessionId ?? null, tools };
try {
  const onprogress = ({ progress, total }) => steps.push([progress, total ?? null]);
  const result = await client.callTool({ name: tool, arguments: JSON.parse(values) }, undefined, { onprogress });
  Object.assign(told, { text: result.content[0].text, is_error: result.isError ?? false });
} catch (error) {
  Object.assign(told, { code: error.code, message: error.message });
}
console.log(JSON.stringify({ ...told, steps }));
await client.close();
