// A host of accounts, with the services behind it at an address of the test's.
// For a test alone: the DID of the chat service is looked up here and not at its host,
// and https://plc.directory is served here, as far as a host asks it.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { PDS, envToCfg, envToSecrets, readEnv } from '@atproto/pds'

const last = new Map()
const document = (did, said) => ({
  '@context': ['https://www.w3.org/ns/did/v1'],
  id: did,
  alsoKnownAs: said.alsoKnownAs,
  verificationMethod: Object.entries(said.verificationMethods).map(([name, key]) => ({
    id: `${did}#${name}`,
    type: 'Multikey',
    controller: did,
    publicKeyMultibase: key.replace('did:key:', ''),
  })),
  service: Object.entries(said.services).map(([name, each]) => ({
    id: `#${name}`,
    type: each.type,
    serviceEndpoint: each.endpoint,
  })),
})
const answers = {
  'log/last': (_, said) => said,
  data: (did, said) => ({ did, ...said }),
}
const directory = createServer(async (request, response) => {
  const [did, ...what] = decodeURIComponent(request.url.slice(1)).split('/')
  const posted = request.method === 'POST'
  if (posted) last.set(did, await json(request))
  const said = last.get(did)
  response.writeHead(said ? 200 : 404, { 'content-type': 'application/json' })
  const answer = posted ? () => ({}) : answers[what.join('/')] ?? document
  response.end(JSON.stringify(said ? answer(did, said) : { message: 'not registered' }))
})
directory.listen(Number(new URL(process.env.PDS_DID_PLC_URL).port), '127.0.0.1')

const env = readEnv()
const pds = await PDS.create(envToCfg(env), envToSecrets(env))
const resolve = pds.ctx.idResolver.did.resolve.bind(pds.ctx.idResolver.did)
const chat = 'did:web:api.bsky.chat'
pds.ctx.idResolver.did.resolve = async (did, ...more) => did !== chat
  ? resolve(did, ...more)
  : {
      id: chat,
      service: [{
        id: '#bsky_chat',
        type: 'BskyChatService',
        serviceEndpoint: process.env.CHAT_URL,
      }],
    }
await pds.start()
