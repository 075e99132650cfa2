// A host of accounts, with the services behind it at an address of the test's.
// For a test alone: the DID of the chat service is looked up here and not at its host.
import { PDS, envToCfg, envToSecrets, readEnv } from '@atproto/pds'

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
