// Who is a member when: the genesis and the epoch documents, each sealed by the epoch before.

import { hex, isSigned, same, tagged } from "./crypto.js";
import { decode, decodeArray } from "./msgpack.js";

export class Unproven extends Error {}

export function need(holds, why) {
  if (!holds) throw new Unproven(why);
}

/** How many receipts beside the author's make an event final. */
export function confirmsNeeded(policy, members) {
  const named = { majority: Math.floor(members / 2), "two-thirds": Math.floor((2 * members) / 3), all: members - 1 };
  if (policy in named) return named[policy];
  const number = /^(0|[1-9][0-9]*)$/.test(policy) ? Number(policy) : NaN;
  need(number < members && (number > 0 || members === 1), "the policy does not fit the members");
  return number;
}

export function sealsNeeded(policy, members) {
  if (policy === "two-thirds") return Math.floor((2 * members) / 3) + 1;
  return Math.max(Math.floor(members / 2) + 1, members - confirmsNeeded(policy, members));
}

function epochOf(number, policy, rows) {
  const members = new Map(rows.map(([no, key, name]) => [no, { number: no, key, name, id: hex(key) }]));
  need(members.size > 0 && members.size === rows.length, "the members are not told apart");
  need(new Set([...members.values()].map((one) => one.id)).size === rows.length, "a member stands twice");
  return { number, policy, members, byKey: new Map([...members.values()].map((one) => [one.id, one])) };
}

export async function readGenesis(bytes) {
  const fields = decode(bytes);
  need(Array.isArray(fields) && fields.length === 7 && fields[0] === 1, "the genesis has another form");
  const rows = fields[4].map(([key, name], place) => [place + 1, key, name]);
  return { clusterId: await tagged("genesis", bytes), name: fields[1], first: epochOf(1, fields[3], rows) };
}

/** A receipt that a member of this epoch signed in it. */
export async function readInv(bytes, clusterId, epoch) {
  const { values, ends } = decodeArray(bytes);
  need(values.length === 8 && values[0] === 1, "a receipt has another form");
  const [, cluster, signer, number, , close, rows, signature] = values;
  need(same(cluster, clusterId), "a receipt of another cluster");
  need(number === epoch.number, "a receipt of another epoch");
  const member = epoch.byKey.get(hex(signer));
  need(member, "a receipt of no member");
  const signed = bytes.slice(0, ends[6]);
  signed[0] = 0x97; // the same array without its signature
  need(await isSigned(signer, "inv", await tagged("inv", signed), signature), `the signature of ${member.name}'s receipt is wrong`);
  return { member, close, rows };
}

/** The epochs of a bundle. */
export class Lineage {
  constructor(clusterId, first) {
    Object.assign(this, { clusterId, epochs: new Map([[1, first]]), newest: first, cut: [], forced: [], seals: [], hash: clusterId });
    this.numberOf = new Map([...first.members.values()].map((one) => [one.id, one.number]));
  }

  async follow([bytes, seals]) {
    const { values, ends } = decodeArray(bytes);
    const forced = values[0] === 2; // opened by an operator's word: one seal is enough
    need(values.length === 10 && (forced || values[0] === 1), "an epoch document has another form");
    const [, cluster, number, before, , policy, members, , cut] = values;
    need(same(cluster, this.clusterId) && number === this.newest.number + 1 && same(before, this.hash), "the epoch documents do not follow each other");
    const marked = forced ? [0xc3] : [], fields = bytes.slice(ends[0] - 1, ends[7]);
    const promised = new Uint8Array([...fields, ...marked]);
    promised[0] = 0x97 + marked.length; // fields 1 to 7 as an array of their own: what CLOSE promised
    const close = await tagged("close", promised);
    this.seals = [];
    for (const seal of seals) {
      const read = await readInv(seal, this.clusterId, this.newest);
      need(read.close && same(read.close, close), "a seal of something else");
      need(!this.seals.some((one) => one.member === read.member), "two seals of one member");
      this.seals.push(read);
    }
    const needed = forced ? 1 : sealsNeeded(this.newest.policy, this.newest.members.size);
    if (forced) this.forced.push(number);
    need(this.seals.length >= needed, `${this.seals.length} seals, ${needed} needed`);
    this.newest = epochOf(number, policy, members);
    for (const member of this.newest.members.values()) {
      need((this.numberOf.get(member.id) ?? member.number) === member.number, "a node number is used again");
      this.numberOf.set(member.id, member.number);
    }
    this.epochs.set(number, this.newest);
    this.cut = cut;
    this.hash = await tagged("epoch", bytes);
  }
}
