// A certified OpenID provider on a port of the loopback. Argument 1 is the folder of its packages, argument 2 its
// options as JSON: {"clients": {ID: {"secret": …, "claims": {…}}}}.
//
// A client's token is as its `resource` says: urn:judge:SIGNATURE:AUDIENCE:SECONDS, where the signature `opaque` is a
// token that only introspection can read. Beside the protocol, POST /-/rotate gives it other keys, and GET /-/asked says
// how often each path was asked.
import crypto from 'node:crypto';
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const [packages, options] = [process.argv[2], JSON.parse(process.argv[3])];
const { Provider, errors } = await import(
  pathToFileURL(`${packages}/node_modules/oidc-provider/lib/index.js`).href
);

const KINDS = [
  ['rsa', { modulusLength: 2048 }, 'RS256'],
  ['rsa', { modulusLength: 2048 }, 'PS256'],
  ['ec', { namedCurve: 'P-256' }, 'ES256'],
  ['ed25519', {}, 'Ed25519'],
];
let generation = 0;

function signingKeys() {
  generation += 1;
  return KINDS.map(([kind, parameters, alg]) => {
    const jwk = crypto.generateKeyPairSync(kind, parameters).privateKey.export({ format: 'jwk' });
    return { ...jwk, alg, use: 'sig', kid: `${alg}-${generation}` };
  });
}

function resourceServer(resource) {
  const [, , alg, audience, seconds] = resource.split(':');
  if (!resource.startsWith('urn:judge:') || seconds === undefined) throw new errors.InvalidTarget();
  const form = alg === 'opaque' ? { accessTokenFormat: 'opaque' } : { accessTokenFormat: 'jwt', jwt: { sign: { alg } } };
  return { scope: 'use', audience, accessTokenTTL: Number(seconds), ...form };
}

function provider(issuer) {
  const made = new Provider(issuer, {
    jwks: { keys: signingKeys() },
    clients: Object.entries(options.clients).map(([id, one]) => ({
      client_id: id,
      client_secret: one.secret,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    scopes: ['use'],
    enabledJWA: { idTokenSigningAlgValues: KINDS.map(([, , alg]) => alg) },
    extraTokenClaims: (_ctx, token) => options.clients[token.clientId].claims,
    ttl: { ClientCredentials: (_ctx, token) => token.resourceServer?.accessTokenTTL ?? 600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx, resource) => resourceServer(resource),
      },
    },
  });
  return made.callback();
}

const asked = {};
let issuer;
let answer;
const server = http.createServer((request, response) => {
  const say = (value) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  if (request.url === '/-/asked') return say(asked);
  if (request.url === '/-/rotate') {
    answer = provider(issuer);
    return say({ generation });
  }
  const path = request.url.split('?')[0];
  asked[path] = (asked[path] ?? 0) + 1;
  return answer(request, response);
});
server.listen(Number(options.port ?? 0), '127.0.0.1', () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  answer = provider(issuer);
  process.stderr.write(`listening on 127.0.0.1:${server.address().port}\n`);
});
