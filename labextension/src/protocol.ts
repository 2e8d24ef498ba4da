/**
 * What page and kernel say to each other, version 1. What comes from the kernel is checked here:
 * a kernel runs anybody's code, and that may send anything on any comm.
 */

import { JSONObject, JSONValue } from '@lumino/coreutils';

export const VERSION = 1;

/** The version of the package that this page is of. */
export const PACKAGE = '0.1.0';

/** Opened by the kernel when ipymemory is loaded there; the kernel tells, the page listens. */
export const PUSH = 'ipymemory.push';

/** Opened by the page; one message, one reply. */
export const RPC = 'ipymemory.rpc';

/** Characters of one cell and of one message; the kernel refuses longer ones. */
export const MOST_CELL = 256 * 1024;
export const MOST_MESSAGE = 1024 * 1024;

/** Documents of one notebook that are told of, and reasons of each. */
const MOST_DOCUMENTS = 5000;
const MOST_REASONS = 10;

/** Cells that a document's record may name. */
const MOST_RESTS = 20000;

/** New text for a living document, made from `base`. */
export interface IUpdate {
  readonly cell: string;
  readonly base: string;
  readonly source: string;
  readonly job: string;
  /** What the text rests on, for the cell's metadata; null where the kernel told none. */
  readonly record: IRecord | null;
  /** Whether it waits for a yes and is not put in by itself. */
  readonly propose: boolean;
  /** `back`: a person undid an update by a command; `again`: they undid that. */
  readonly asked: '' | 'back' | 'again';
}

/** How a document stands in the saved notebook, as a check of that file sees it. */
export interface IStanding {
  readonly cell: string;
  /** When the record was made that was compared: another one is not meant. */
  readonly updated: string;
  /** Why it is stale, a clause each; nothing where it is true. */
  readonly stale: readonly string[];
  /** Whether it waits to be accepted; `stale` then says so. */
  readonly waits: boolean;
}

/**
 * Which cells a document rests on, each with the hash of what it does, as the files name it. Where
 * an engine wrote the document itself, and not between our two lines, `by` names it.
 */
export interface IRecord extends JSONObject {
  file: string;
  rests_on: JSONObject[];
  updated: string;
  version: number;
}

/** What the kernel says of its session. */
export interface ISession {
  readonly project: string;
  readonly engine: string;
  readonly recording: boolean;
  readonly paused: boolean;
  readonly begun: boolean;
  readonly reason: string;
  /** The version of the kernel's package, nothing where it was not told. */
  readonly version: string;
}

/** Return the message's fields if it is one of this version, else null. */
export function read(data: JSONValue | undefined): JSONObject | null {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    return null;
  }
  return data.v === VERSION && typeof data.type === 'string' ? data : null;
}

/** Return the update that a `doc.update` tells, null where it tells none that can be used. */
export function readUpdate(data: JSONObject): IUpdate | null {
  const { cell, base, source, job } = data;
  if (typeof cell !== 'string' || typeof base !== 'string' || typeof source !== 'string') {
    return null;
  }
  if (base.length > MOST_CELL || source.length > MOST_CELL) {
    return null;
  }
  const propose = data.propose === true;
  const asked = data.asked === 'back' || data.asked === 'again' ? data.asked : '';
  return { cell, base, source, job: text(job, 500), record: readRecord(data.record), propose, asked };
}

/** Return how documents stand as a `doc.standing` tells; what of it cannot be used is left out. */
export function readStanding(data: JSONObject): IStanding[] {
  const found: IStanding[] = [];
  for (const each of Array.isArray(data.documents) ? data.documents.slice(0, MOST_DOCUMENTS) : []) {
    const { cell, updated, stale, waits } = (each ?? {}) as JSONObject;
    if (typeof cell === 'string' && typeof updated === 'string' && Array.isArray(stale)) {
      const why = stale.slice(0, MOST_REASONS).map(one => text(one, 300));
      found.push({ cell, updated, stale: why.filter(one => one), waits: waits === true });
    }
  }
  return found;
}

/** Return the record that the kernel told, null where it is none that can be kept. */
function readRecord(data: JSONValue | undefined): IRecord | null {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    return null;
  }
  const { rests_on: rests, version } = data;
  if (!Array.isArray(rests) || rests.length > MOST_RESTS || typeof version !== 'number') {
    return null;
  }
  const kept: JSONObject[] = [];
  for (const each of rests) {
    const { cell, hash } = (each ?? {}) as JSONObject;
    if (typeof cell !== 'string' || typeof hash !== 'string' || cell.length + hash.length > 500) {
      return null;
    }
    kept.push({ cell, hash });
  }
  const file = text(data.file, 500);
  const record: IRecord = { file, rests_on: kept, updated: text(data.updated, 50), version };
  const by = text(data.by, 50);
  return by ? { by, ...record } : record;
}

/** Return the session that a `welcome` or `status` tells. */
export function readSession(data: JSONObject): ISession {
  return {
    project: text(data.project, 200),
    engine: text(data.engine, 50),
    recording: data.recording === true,
    paused: data.paused === true,
    begun: data.begun === true,
    reason: text(data.reason, 1000),
    version: text(data.version, 50)
  };
}

/** Return a text of at most `most` characters, nothing for what is none. */
export function text(value: JSONValue | undefined, most: number): string {
  return typeof value === 'string' ? value.slice(0, most) : '';
}

/** Return a short name of a text's state; the kernel gives it back with what it made of that. */
export function stamp(source: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < source.length; i++) {
    const code = source.charCodeAt(i);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  return `${(a >>> 0).toString(16)}${(b >>> 0).toString(16)}-${source.length}`;
}
