// A finality bundle, checked here and now: nothing the node says of it is believed.
// A third implementation of the rules, beside ledger/bundle.py and quipu/verify.

import { hex, isSigned, knowsEd25519, same, sha256, tagged } from "./crypto.js";
import { decode } from "./msgpack.js";
import { confirmsNeeded, Lineage, need, readGenesis, readInv, Unproven } from "./rosters.js";

export const MEDIA_TYPES = ["application/json", "application/msgpack", "application/octet-stream", "text/plain; charset=utf-8", "application/cloudevents+json"];
const LEAF = Uint8Array.of(0), INNER = Uint8Array.of(1);
const HOLE = [0x91, 0xc4, 0x20], HOLE_BYTES = 35; // in the place of an erased entry: an array of its leaf hash

/**
 * @param {Uint8Array} bytes the bundle
 * @param {string} wanted the entry's id
 * @param {(step: {what: string, why: string, holds: boolean}) => void} tell each step as it is done
 * @returns {Promise<{holds: boolean, entry?: object, clusterId?: string}>}
 */
export async function check(bytes, wanted, tell) {
  let doing = "The bundle is read";
  const step = async (what, run) => {
    doing = what;
    const [why, value] = await run();
    tell({ what, why, holds: true });
    return value;
  };
  try {
    if (!(await knowsEd25519())) throw new Unproven("this browser knows no Ed25519; a newer one does, or keep the proof and run: quipu verify FILE");
    return { holds: true, ...(await steps(bytes, wanted, step)) };
  } catch (error) {
    tell({ what: doing, why: error.message, holds: false });
    return { holds: false };
  }
}

async function steps(bytes, wanted, step) {
  const bundle = await step("The bundle is read", async () => {
    const fields = decode(bytes);
    need(Array.isArray(fields) && fields.length === 10 && fields[0] === 1, "it has another form");
    return [`${bytes.length} bytes of canonical msgpack, ten fields`, fields];
  });
  const [, genesis, documents, header, signature, index, entry, path, chain, receipts] = bundle;
  const lineage = await step("The cluster", async () => {
    const { clusterId, name, first } = await readGenesis(genesis);
    return [`SHA-256 of the genesis is ${hex(clusterId)}: ${name}, ${first.members.size} founding members, policy ${first.policy}`, new Lineage(clusterId, first)];
  });
  if (documents.length) {
    await step("The epochs since", async () => {
      for (const document of documents) await lineage.follow(document);
      const forced = lineage.forced.length ? `; opened by force, perhaps with fewer seals: epoch ${lineage.forced.join(", ")}` : "";
      return [`${documents.length} epoch documents, each sealed by enough members of the epoch before${forced}; the newest is epoch ${lineage.newest.number}`];
    });
  }
  const event = await step("The event's id", async () => {
    const read = await readHeader(header, lineage);
    need(`${hex(read.id)}:${index}` === wanted, "the bundle is of another entry");
    return [`SHA-256 of the header is ${hex(read.id)}`, read];
  });
  await step("The author's signature", async () => {
    need(await isSigned(event.author, "event", event.id, signature), "the event's signature is wrong");
    return [`Ed25519 of ${event.member.name} (${event.member.id}) over that id`];
  });
  const opened = await step("The entry is in the event", async () => {
    need(same(await rootOf(entry, index, event.count, path), event.root), "the path leads to another root");
    const what = isHole(entry) ? "it was erased, and its leaf hash stays; " : "";
    return [`${what}leaf ${index} of ${event.count}: ${path.length} hashes of the Merkle path lead to the root in the header`, readEntry(entry, event)];
  });
  const line = await step("The cord above", async () => {
    const ids = await readLine(chain, event);
    return [chain.length ? `${chain.length} headers, each naming the one before, up to what the receipts name` : "the receipts name the event itself", ids];
  });
  const found = receipts.length ? await byReceipts(receipts, line, event, lineage, step) : await byCut(line, event, lineage, step);
  return { entry: opened, event, clusterId: hex(lineage.clusterId), ...found };
}

async function readHeader(bytes, lineage) {
  const fields = decode(bytes);
  need(Array.isArray(fields) && fields.length === 14 && fields[0] === 1, "the header has another form");
  const [, cluster, author, epoch, journal, seq, prev, , hlc, , , count, , root] = fields;
  need(same(cluster, lineage.clusterId), "an event of another cluster");
  const member = lineage.epochs.get(epoch)?.byKey.get(hex(author));
  need(member, "the author is no member of the event's epoch");
  return { id: await tagged("event", bytes), cluster, author, epoch, journal, seq, prev, hlc, count, root, member };
}

/** RFC 6962: from the leaf to the root. */
export async function rootOf(entry, index, count, path) {
  need(index < count, "there is no such entry");
  let node = isHole(entry) ? entry.slice(HOLE.length) : await sha256(LEAF, entry), position = index, last = count - 1, used = 0;
  while (last > 0) {
    if ((position ^ 1) <= last) {
      const sibling = path[used];
      need(sibling?.length === 32, "the path is too short");
      used += 1;
      node = position & 1 ? await sha256(INNER, sibling, node) : await sha256(INNER, node, sibling);
    }
    position >>= 1;
    last >>= 1;
  }
  need(used === path.length, "the path is too long");
  return node;
}

function isHole(bytes) {
  return bytes.length === HOLE_BYTES && HOLE.every((byte, at) => bytes[at] === byte);
}

function readEntry(bytes, event) {
  if (isHole(bytes)) return { erased: true, data: new Uint8Array() };
  const fields = decode(bytes);
  need(Array.isArray(fields) && fields.length === 12, "the entry has another form");
  const [, kind, stream, submitter, , , key, time, type, data] = fields;
  const time_ms = time ?? Number(BigInt(event.hlc) >> 16n);
  return { kind, stream, submitter, key, time_ms, type: typeof type === "number" ? MEDIA_TYPES[type] : type, data };
}

/** The ids of the cord from the event upwards. */
async function readLine(chain, event) {
  const ids = [event.id];
  for (const bytes of chain) {
    const [, cluster, author, , journal, seq, prev] = decode(bytes);
    const isNext = same(cluster, event.cluster) && same(author, event.author) && journal === event.journal && seq === event.seq + ids.length && same(prev, ids.at(-1));
    need(isNext, "the headers are no chain");
    ids.push(await tagged("event", bytes));
  }
  return ids;
}

/** The highest place on the line that a row names; -1: none does. */
function highest(rows, line, event, number) {
  const places = rows.filter(([no, journal, seq, id]) => no === number && journal === event.journal && line[seq - event.seq] && same(line[seq - event.seq], id));
  return Math.max(-1, ...places.map(([, , seq]) => seq - event.seq));
}

async function byReceipts(receipts, line, event, lineage, step) {
  const number = lineage.numberOf.get(event.member.id), signers = [];
  let top = 0;
  for (const bytes of receipts) {
    await step(`Receipt ${signers.length + 1} of ${receipts.length}`, async () => {
      const inv = await readInv(bytes, lineage.clusterId, lineage.newest);
      const place = highest(inv.rows, line, event, number);
      need(place >= 0, "it does not cover the event");
      need(!signers.length || inv.member.number > signers.at(-1).number, "the receipts are not sorted, one a member");
      signers.push(inv.member);
      top = Math.max(top, place);
      return [`${inv.member.name} signed that it holds the cord ${place ? `${place} events further` : "up to this event"}: Ed25519 of ${inv.member.id}`];
    });
  }
  return step("Enough members hold it", async () => {
    need(top === line.length - 1, "there are headers that no receipt needs");
    const others = signers.filter((one) => one.number !== number), wanted = policyNeeds(lineage.newest);
    need(others.length < signers.length, "the author's own receipt is missing");
    need(others.length >= wanted, `${others.length} receipts of others, ${wanted} needed`);
    return [`its author and ${others.length} of the ${lineage.newest.members.size - 1} others; ${wanted} of them make it final`, { by: "receipts" }];
  });
}

/** By the newest document's cut, as far as the seals beside it allow that row. */
async function byCut(line, event, lineage, step) {
  return step("A checkpoint covers it", async () => {
    const epoch = lineage.epochs.get(lineage.newest.number - 1);
    need(epoch && event.epoch <= epoch.number, "there are neither receipts nor a checkpoint above it");
    const number = lineage.numberOf.get(event.member.id), cut = highest(lineage.cut, line, event, number);
    need(cut >= 0, "no row of the checkpoint covers it");
    const places = lineage.seals.map((seal) => highest(seal.rows, line, event, number)), covering = places.filter((place) => place >= cut);
    const members = epoch.members.size, liars = epoch.policy === "two-thirds" ? Math.floor((members - 1) / 3) : 0;
    const wanted = Math.max(1, policyNeeds(epoch) + 1 - (members - lineage.seals.length) - liars);
    need(covering.length >= wanted, `${covering.length} seals cover it, ${wanted} needed`);
    need(Math.max(cut, ...covering) === line.length - 1, "there are headers that nothing needs");
    return [`the checkpoint that ended epoch ${epoch.number}: ${covering.length} seals cover it, ${wanted} are needed`, { by: "checkpoint" }];
  });
}

const policyNeeds = ({ policy, members }) => confirmsNeeded(policy, members.size);
