// Canonical msgpack, as far as proofs use it: nil, booleans, whole numbers, text, bytes, arrays.
// Only the one shortest encoding is taken: two encodings of one value would be two hashes.

const VALUES_MAX = 200_000;
const DEEP_MAX = 8;
const TEXT = new TextDecoder("utf-8", { fatal: true });

export class NotCanonical extends Error {}

/** @param {Uint8Array} bytes @returns {unknown} integers beyond 2^53 are BigInt */
export function decode(bytes) {
  return new Reader(bytes).whole();
}

/** An array with the place where each of its elements ends, to cut out what was signed. */
export function decodeArray(bytes) {
  const reader = new Reader(bytes), ends = [];
  const values = reader.array(reader.byte(), 0, () => ends.push(reader.at));
  reader.end();
  return { values, ends };
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
    this.count = 0;
  }

  whole() {
    const value = this.value(0);
    this.end();
    return value;
  }

  end() {
    if (this.at !== this.bytes.length) throw new NotCanonical("bytes behind the value");
  }

  byte() {
    if (this.at >= this.bytes.length) throw new NotCanonical("the bytes end early");
    return this.bytes[this.at++];
  }

  value(deep) {
    this.count += 1;
    if (this.count > VALUES_MAX || deep > DEEP_MAX) throw new NotCanonical("too many values");
    const first = this.byte();
    if (first < 0x80) return first;
    if (first >= 0xa0 && first < 0xc0) return this.text(first & 0x1f);
    if ((first >= 0x90 && first < 0xa0) || first === 0xdc || first === 0xdd) return this.array(first, deep);
    switch (first) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: return this.cut(this.number(1, 0));
      case 0xc5: return this.cut(this.number(2, 0x100));
      case 0xc6: return this.cut(this.number(4, 0x10000));
      case 0xcc: return this.number(1, 0x80);
      case 0xcd: return this.number(2, 0x100);
      case 0xce: return this.number(4, 0x10000);
      case 0xcf: return this.large();
      case 0xd9: return this.text(this.number(1, 0x20));
      case 0xda: return this.text(this.number(2, 0x100));
      case 0xdb: return this.text(this.number(4, 0x10000));
      default: throw new NotCanonical(`not a value of the format: ${first.toString(16)}`);
    }
  }

  number(wide, least) {
    this.need(wide);
    const value = wide === 1 ? this.view.getUint8(this.at) : wide === 2 ? this.view.getUint16(this.at) : this.view.getUint32(this.at);
    this.at += wide;
    if (value < least) throw new NotCanonical("a shorter encoding exists");
    return value;
  }

  large() {
    this.need(8);
    const value = this.view.getBigUint64(this.at);
    this.at += 8;
    if (value < 0x1_0000_0000n) throw new NotCanonical("a shorter encoding exists");
    return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
  }

  need(length) {
    if (this.at + length > this.bytes.length) throw new NotCanonical("the bytes end early");
  }

  cut(length) {
    this.need(length);
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  text(length) {
    try {
      return TEXT.decode(this.cut(length));
    } catch (error) {
      throw error instanceof NotCanonical ? error : new NotCanonical("a text is not UTF-8");
    }
  }

  array(first, deep, after = () => {}) {
    let length = 0;
    if (first >= 0x90 && first < 0xa0) length = first & 0x0f;
    else if (first === 0xdc) length = this.number(2, 0x10);
    else if (first === 0xdd) length = this.number(4, 0x10000);
    else throw new NotCanonical("not an array");
    const values = [];
    for (let place = 0; place < length; place += 1) {
      values.push(this.value(deep + 1));
      after();
    }
    return values;
  }
}
