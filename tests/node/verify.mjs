// Verifies bundles with the JavaScript implementation of Sigstore. Standard input is one JSON document,
// {"trustedRoot": {...}, "cases": [{"name", "bundle", "subject", "issuer"}]}; standard output is
// {"<name>": {"verified": true, "payload": "<base64>"} | {"verified": false, "code", "message"}}.
import { readFileSync } from 'node:fs';
import { bundleFromJSON } from '@sigstore/bundle';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { Verifier, toSignedEntity, toTrustMaterial } from '@sigstore/verify';

// The library reads an expected subject as a pattern; ours are exact.
const exactly = (text) => `^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;

function verify(trust, { bundle, subject, issuer }) {
  // Two times: that of the timestamp authority, and on Rekor v1 that of the log.
  const entries = bundle.verificationMaterial?.tlogEntries ?? [];
  const times = entries.some((entry) => entry.inclusionPromise) ? 2 : 1;
  const verifier = new Verifier(trust, { timestampThreshold: times, tlogThreshold: 1, ctlogThreshold: 1 });
  const parsed = bundleFromJSON(bundle);
  verifier.verify(toSignedEntity(parsed), { subjectAlternativeName: exactly(subject), extensions: { issuer } });
  return { verified: true, payload: parsed.content.dsseEnvelope.payload.toString('base64') };
}

function attempt(makeTrust, one) {
  try {
    return verify(makeTrust(), one);
  } catch (error) {
    return { verified: false, code: error.code ?? error.name, message: error.message };
  }
}

const request = JSON.parse(readFileSync(0, 'utf8'));
const makeTrust = () => toTrustMaterial(TrustedRoot.fromJSON(request.trustedRoot));
const results = Object.fromEntries(request.cases.map((one) => [one.name, attempt(makeTrust, one)]));
process.stdout.write(JSON.stringify(results));
