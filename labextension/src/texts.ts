/** The markdown cells of one notebook: found, and told to the kernel when they change. */

import { ICellModel } from '@jupyterlab/cells';
import { NotebookPanel } from '@jupyterlab/notebook';
import { JSONObject } from '@lumino/coreutils';
import { MOST_CELL, MOST_MESSAGE, stamp } from './protocol';

/** Milliseconds of rest before a change is told. */
const REST = 400;

/** Sends a message and resolves to its reply, or to null when there is none. */
export type Send = (type: string, fields: JSONObject) => Promise<JSONObject | null>;

/** Return the markdown cell with this id, and its place, null where there is none. */
export function find(panel: NotebookPanel, id: string): { model: ICellModel; index: number } | null {
  const cells = panel.content.model?.cells;
  for (let index = 0; cells && index < cells.length; index++) {
    const model = cells.get(index);
    if (model.id === id) {
      return model.type === 'markdown' ? { model, index } : null;
    }
  }
  return null;
}

/** Return the id of the markdown cell that somebody is writing in, or nothing. */
export function editing(panel: NotebookPanel): string {
  const cell = panel.content.activeCell;
  return panel.content.mode === 'edit' && cell?.model.type === 'markdown' ? cell.model.id : '';
}

/** Return every markdown cell of the notebook, in order. */
export function* markdown(panel: NotebookPanel): Iterable<{ id: string; index: number; source: string }> {
  const cells = panel.content.model?.cells;
  for (let index = 0; cells && index < cells.length; index++) {
    const model = cells.get(index);
    if (model.type === 'markdown') {
      yield { id: model.id, index, source: model.sharedModel.getSource() };
    }
  }
}

/**
 * Tells the kernel all cells once and then those that change, when they have been left: half a
 * sentence is nobody's word.
 */
export class Texts {
  constructor(
    private _panel: NotebookPanel,
    private _send: Send
  ) {
    void _panel.context.ready.then(() => {
      for (const each of markdown(_panel)) {
        this._came.set(each.id, each.source);
      }
    });
  }

  /** Tell all cells, now: the kernel is a new one, or knows nothing of this page. */
  all(): void {
    this._told.clear();
    this._editing = '';
    const cells = [...markdown(this._panel)];
    const parts: JSONObject[][] = [[]];
    let size = 0;
    for (const each of cells) {
      if (each.source.length > MOST_CELL) {
        continue;
      }
      size += each.source.length;
      if (size > MOST_MESSAGE) {
        parts.push([]);
        size = each.source.length;
      }
      parts[parts.length - 1].push(this._message(each));
    }
    parts.forEach((part, n) => {
      void this._send('cells', { cells: part, full: true, more: n < parts.length - 1 });
    });
    this.changed();
  }

  /** Take in that something may have changed, and tell it after a moment of rest. */
  changed(): void {
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => this._tell(), REST);
  }

  /** Tell nothing more. */
  stop(): void {
    clearTimeout(this._timer);
  }

  private _tell(): void {
    const now = editing(this._panel);
    if (now !== this._editing) {
      this._editing = now;
      void this._send('editing', { cell: now || null });
    }
    const gone = new Set(this._told.keys());
    let part: JSONObject[] = [];
    let size = 0;
    for (const each of markdown(this._panel)) {
      gone.delete(each.id);
      const same = this._told.get(each.id) === each.source;
      if (same || each.id === now || each.source.length > MOST_CELL) {
        continue;
      }
      size += each.source.length;
      if (size > MOST_MESSAGE) {
        void this._send('cells', { cells: part });
        part = [];
        size = each.source.length;
      }
      part.push(this._message(each));
    }
    gone.forEach(id => this._told.delete(id));
    if (part.length || gone.size) {
      void this._send('cells', { cells: part, removed: [...gone] });
    }
  }

  private _message(each: { id: string; index: number; source: string }): JSONObject {
    this._told.set(each.id, each.source);
    return {
      id: each.id,
      source: each.source,
      hash: stamp(each.source),
      position: each.index,
      origin: this._came.get(each.id) === each.source ? 'file' : 'typed'
    };
  }

  private _came = new Map<string, string>();
  private _told = new Map<string, string>();
  private _editing = '';
  private _timer = 0;
}
