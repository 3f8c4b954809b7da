// Hashes and signatures by WebCrypto, which browsers give to secure contexts alone.

import { hex } from "./format.js";

const WORDS = new TextEncoder();

export const hasCrypto = () => Boolean(globalThis.crypto?.subtle);

/** Why nothing can be checked here, and the way out. */
export const NO_CRYPTO = "This browser gives cryptography to pages that came by https or from this very machine. Open the node by https, or by a tunnel (ssh -L 8470:localhost:8470 HOST, then localhost:8470), or keep the proof and run: quipu verify FILE";

export function join(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) { all.set(part, at); at += part.length; }
  return all;
}

export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
}

/** Hashes and signatures each say what they are for. */
export const tagged = (tag, data) => sha256(WORDS.encode(`quipu/${tag}/1\0`), data);

export async function isSigned(key, tag, identity, signature) {
  const held = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify("Ed25519", held, signature, join(WORDS.encode(`quipu/sig/${tag}/1\0`), identity));
}

/** Older browsers know no Ed25519. */
export async function knowsEd25519() {
  try {
    await crypto.subtle.importKey("raw", new Uint8Array(32), { name: "Ed25519" }, false, ["verify"]);
    return true;
  } catch (error) {
    return error.name !== "NotSupportedError" && error.name !== "TypeError";
  }
}

export const same = (one, other) => one.length === other.length && one.every((byte, place) => byte === other[place]);
export { hex };
