// A client of the TypeScript SDK 2, by HTTP: arguments are the folder of its packages, a URL, an era (legacy, auto or
// modern), and a tool's name and arguments.
import { pathToFileURL } from 'node:url';

const [folder, url, mode, tool, values] = process.argv.slice(2);
const at = `${folder}/node_modules/@modelcontextprotocol/client/dist/index.mjs`;
const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(at).href);

const steps = [];
const client = new Client({ name: 'judge', version: '1' }, { versionNegotiation: { mode } });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const tools = (await client.listTools()).tools.map((one) => one.name);
const told = { revision: client.getNegotiatedProtocolVersion(), session: transport.sessionId ?? null, tools };
try {
  const onprogress = ({ progress, total }) => steps.push([progress, total ?? null]);
  const result = await client.callTool({ name: tool, arguments: JSON.parse(values) }, { onprogress });
  Object.assign(told, { text: result.content[0].text, is_error: result.isError ?? false });
} catch (error) {
  Object.assign(told, { code: error.code, message: error.message });
}
console.log(JSON.stringify({ ...told, steps }));
await client.close();
