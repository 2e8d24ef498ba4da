/** What a living document rests on: in its cell's metadata, and in the notebook as it is now. */

import { ICellModel } from '@jupyterlab/cells';
import { NotebookPanel } from '@jupyterlab/notebook';
import { JSONExt, JSONObject, JSONValue } from '@lumino/coreutils';
import { IRecord } from './protocol';

/** What a text rests on that was there before anything was recorded: no cell as it is now. */
export const NOTHING: IRecord = { file: '', rests_on: [], updated: '', version: 1 };

/** The lines around what is ours in a document. */
const BEGIN = '<!-- ipymemory:begin -->';
const END = '<!-- ipymemory:end -->';

/** Return what of a document is ours: what stands between our two lines, else all of it. */
export function ours(source: string): string {
  const begin = source.indexOf(BEGIN);
  const end = source.indexOf(END, begin);
  return begin >= 0 && end >= 0 ? source.slice(begin, end) : source;
}

/** Return what each code cell does, by its id: without comments of a line's length and blanks. */
export function steps(panel: NotebookPanel): Map<string, string> {
  const found = new Map<string, string>();
  const cells = panel.content.model?.cells;
  for (let index = 0; cells && index < cells.length; index++) {
    const model = cells.get(index);
    if (model.type === 'code') {
      const lines = model.sharedModel.getSource().split('\n');
      const kept = lines.filter(line => line.trim() && !line.trim().startsWith('#'));
      found.set(model.id, kept.map(line => line.trimEnd()).join('\n'));
    }
  }
  return found;
}

/** Return the cells that a document rests on as its record says, null where it has none. */
export function restsOn(model: ICellModel | undefined): string[] | null {
  const rests: unknown = model && recorded(model)?.rests_on;
  if (!Array.isArray(rests)) {
    return null;
  }
  return rests.map(each => (typeof each?.cell === 'string' ? each.cell : ''));
}

/** Return what the cell's metadata says that its text rests on, null where they say nothing. */
export function recorded(model: ICellModel): IRecord | null {
  const held = model.getMetadata('ipymemory') as { doc?: IRecord } | null | undefined;
  return held?.doc ?? null;
}

/** Keep in the cell's metadata what its text rests on; the same again is no change. */
export function record(model: ICellModel, record: IRecord | null): void {
  if (record === null) {
    return;
  }
  const held: JSONValue | undefined = model.getMetadata('ipymemory');
  const ours = JSONExt.isObject(held ?? null) ? (held as JSONObject) : {};
  const before = ours.doc as Partial<IRecord> | null | undefined;
  const same =
    before?.file === record.file &&
    before.by === record.by &&
    before.version === record.version &&
    JSONExt.deepEqual(before.rests_on ?? [], record.rests_on);
  if (!same) {
    model.setMetadata('ipymemory', { ...ours, doc: record });
  }
}
