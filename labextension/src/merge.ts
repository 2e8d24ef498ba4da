/** Texts of living documents: which are some, what changed, and how two changes become one. */

import { diff3Merge, diffIndices } from 'node-diff3';

const LIVING = /^(?:[ \t\r]*\n)* {0,3}#{1,6}[ \t]*MAGIC[ \t]*DOC[ \t]*:[ \t]*([^\n]*)/i;

/** Return the title of a living document, null for a text that is none. */
export function title(source: string): string | null {
  const found = LIVING.exec(source.slice(0, 2000));
  return found ? found[1].replace(/[ \t]#+[ \t\r]*$/, '').trim() || 'Untitled' : null;
}

/** A piece of a text, by offsets, and what takes its place. */
export interface IEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Return the edits, the last first, that make `now` of `before` and leave the rest alone. */
export function edits(before: string, now: string): IEdit[] {
  const old = lines(before);
  const starts = [0];
  for (const line of old) {
    starts.push(starts[starts.length - 1] + line.length);
  }
  return diffIndices(old, lines(now))
    .map(each => {
      const from = each.buffer1[0];
      const piece = each.buffer1Content.join('');
      return trimmed(starts[from], piece, each.buffer2Content.join(''));
    })
    .reverse();
}

/**
 * Return `mine` with the changes from `base` to `theirs`, null where both changed the same lines,
 * or where a living document would no longer be one.
 */
export function merge(mine: string, base: string, theirs: string): string | null {
  if (mine === base || mine === theirs) {
    return theirs;
  }
  if (theirs === base) {
    return mine;
  }
  const pieces = diff3Merge(lines(mine), lines(base), lines(theirs), {
    excludeFalseConflicts: true
  });
  const merged: string[] = [];
  for (const piece of pieces) {
    if (!piece.ok) {
      return null;
    }
    merged.push(...piece.ok);
  }
  const found = merged.join('');
  return title(found) === null ? null : found;
}

/** A line of a comparison. */
export interface IDiffLine {
  readonly kind: 'same' | 'gone' | 'new';
  readonly text: string;
}

/** Return both texts line by line, with at most `around` lines of what is the same. */
export function compare(before: string, now: string, around = 2): IDiffLine[] {
  const old = before.split('\n');
  const found: IDiffLine[] = [];
  let at = 0;
  const same = (upTo: number) => {
    const rest = old.slice(at, upTo);
    const shown =
      rest.length > 2 * around + 1
        ? [...rest.slice(0, at ? around : 0), '…', ...rest.slice(upTo < old.length ? -around : rest.length)]
        : rest;
    found.push(...shown.map(text => ({ kind: 'same' as const, text })));
  };
  for (const each of diffIndices(old, now.split('\n'))) {
    same(each.buffer1[0]);
    found.push(...each.buffer1Content.map(text => ({ kind: 'gone' as const, text })));
    found.push(...each.buffer2Content.map(text => ({ kind: 'new' as const, text })));
    at = each.buffer1[0] + each.buffer1[1];
  }
  same(old.length);
  return found;
}

/** Return the lines of a text, each with its line feed. */
function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Return the edit without what both pieces begin and end with; never half a character. */
function trimmed(at: number, before: string, now: string): IEdit {
  const most = Math.min(before.length, now.length);
  let start = 0;
  while (start < most && before[start] === now[start]) {
    start++;
  }
  if (start && isHigh(before.charCodeAt(start - 1))) {
    start--;
  }
  let tail = 0;
  while (
    tail < most - start &&
    before[before.length - 1 - tail] === now[now.length - 1 - tail]
  ) {
    tail++;
  }
  if (tail && isLow(before.charCodeAt(before.length - tail))) {
    tail--;
  }
  return { start: at + start, end: at + before.length - tail, text: now.slice(start, now.length - tail) };
}

const isHigh = (code: number) => code >= 0xd800 && code < 0xdc00;
const isLow = (code: number) => code >= 0xdc00 && code < 0xe000;
