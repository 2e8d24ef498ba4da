/**
 * The living documents of one notebook: cells that begin `# MAGIC DOC: title`.
 *
 * New text from the kernel is put into the cell as an undo step of its own. A cell that somebody
 * is writing in is left until they leave it; then the newest update counts. What they changed
 * meanwhile is merged by lines, and where both changed the same ones theirs stays and the update
 * is kept as a proposal.
 */

import { ICellModel } from '@jupyterlab/cells';
import { NotebookPanel } from '@jupyterlab/notebook';
import { JSONExt, JSONObject, JSONValue } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { Marks } from './marks';
import { edits, merge, title } from './merge';
import { IRecord, IUpdate } from './protocol';
import { Send, editing, find, markdown } from './texts';

/** Milliseconds between leaving a cell and the update, so that its own change comes first. */
const LEFT = 30;

/** What a text rests on that was there before anything was recorded: no cell as it is now. */
const NOTHING: IRecord = { file: '', rests_on: [], updated: '', version: 1 };

/** The lines around what is ours in a document. */
const BEGIN = '<!-- ipymemory:begin -->';
const END = '<!-- ipymemory:end -->';

/** Milliseconds of rest before the notebook is looked through for documents. */
const LOOK = 200;

export type DocumentState = 'new' | 'current' | 'stale' | 'waiting' | 'proposal';

/** A living document as the panel shows it. */
export interface IDocument {
  readonly cell: string;
  readonly title: string;
  readonly state: DocumentState;
  /** The text that waits for a yes, null where none does. */
  readonly proposed: string | null;
  readonly source: string;
  /** What the last update changed, null where none came or it was taken back. */
  readonly last: IStep | null;
}

/** A cell's text before and after an update. */
export interface IStep {
  readonly before: string;
  readonly after: string;
  /** What the text before rested on, null where that was not kept. */
  readonly record: IRecord | null;
  /** Whose update it was. */
  readonly job: string;
}

export class Documents implements IDisposable {
  constructor(
    private _panel: NotebookPanel,
    private _send: Send
  ) {
    this._marks = new Marks(_panel, cell => this._asked.emit(cell));
    void _panel.context.ready.then(() => this.look());
  }

  /** Emitted when a document or its state changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted with the cell whose mark was pressed. */
  get asked(): ISignal<this, string> {
    return this._asked;
  }

  /** The documents in order, as they were last seen. */
  get list(): readonly IDocument[] {
    return this._list;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    clearTimeout(this._lookTimer);
    clearTimeout(this._leftTimer);
    this._marks.dispose();
    Signal.clearData(this);
  }

  /** Take an update; of several for one cell only the newest is applied. */
  take(update: IUpdate): void {
    if (this._declined.get(update.cell) === ours(update.source)) {
      // Made from what they wrote since, it says again what they did not want.
      return;
    }
    this._declined.delete(update.cell);
    this._waiting.set(update.cell, update);
    if (editing(this._panel) === update.cell) {
      this._show();
    } else {
      this._apply(update.cell);
    }
  }

  /** Take in that somebody may have left a cell. */
  left(): void {
    if (!this._waiting.size) {
      return;
    }
    clearTimeout(this._leftTimer);
    this._leftTimer = window.setTimeout(() => {
      const now = editing(this._panel);
      [...this._waiting.keys()].filter(cell => cell !== now).forEach(cell => this._apply(cell));
    }, LEFT);
  }

  /** Look through the notebook for documents, after a moment of rest. */
  look(): void {
    clearTimeout(this._lookTimer);
    this._lookTimer = window.setTimeout(() => this._show(), LOOK);
  }

  /** Put the proposed text into its cell: somebody said yes. */
  accept(cell: string): void {
    const update = this._proposed.get(cell);
    const found = find(this._panel, cell);
    if (update && found) {
      this._proposed.delete(cell);
      this._write(cell, update, update.source);
    }
  }

  /** Forget the proposed text: somebody said no. */
  dismiss(cell: string): void {
    const update = this._proposed.get(cell);
    if (update) {
      this._declined.set(cell, ours(update.source));
      void this._send('dismissed', { cell, job: update.job });
    }
    this._proposed.delete(cell);
    this._show();
  }

  /** Take the last update of a document back, as a step of its own; what is theirs stays. */
  undo(cell: string): void {
    const step = this._steps.get(cell);
    const found = find(this._panel, cell);
    const now = step && found ? merge(found.model.sharedModel.getSource(), step.after, step.before) : null;
    if (!step || !found) {
      return;
    }
    if (now === null) {
      // They have written where the update did: the text before it waits for a yes.
      this._proposed.set(cell, { cell, base: step.after, source: step.before, job: '', record: null });
    } else {
      this._steps.delete(cell);
      this._declined.set(cell, ours(step.after));
      this._put(found, now, step.record ?? NOTHING);
      void this._send('dismissed', { cell, job: step.job });
    }
    this._show();
  }

  private _apply(cell: string): void {
    const update = this._waiting.get(cell);
    this._waiting.delete(cell);
    const found = find(this._panel, cell);
    if (!update || this._disposed) {
      return;
    }
    const mine = found?.model.sharedModel.getSource() ?? '';
    if (!found || title(mine) === null) {
      // Removed, or no longer a living document: not ours to write in.
      void this._send('conflict', { cell, job: update.job });
      this._show();
      return;
    }
    // Made from the same text as the one before, it does not know that one: what counts as the
    // person's is what differs from that.
    const last = this._last.get(cell);
    const base = last && last.base === update.base ? last.source : update.base;
    const now = merge(mine, base, update.source);
    if (now === null) {
      this._proposed.set(cell, update);
      void this._send('conflict', { cell, job: update.job });
      this._show();
    } else {
      this._write(cell, update, now);
    }
  }

  private _write(cell: string, update: IUpdate, now: string): void {
    const found = find(this._panel, cell);
    if (!found) {
      return;
    }
    this._last.set(cell, update);
    this._proposed.delete(cell);
    const before = found.model.sharedModel.getSource();
    if (now !== before) {
      this._steps.set(cell, { before, after: now, record: recorded(found.model), job: update.job });
    }
    this._put(found, now, update.record);
    this._known.delete(cell);
    void this._send('applied', { cell, job: update.job });
    this._show();
  }

  /** Put a text into a cell, and what it rests on into its metadata. */
  private _put(found: NonNullable<ReturnType<typeof find>>, now: string, kept: IRecord | null): void {
    const shared = found.model.sharedModel;
    const changes = edits(shared.getSource(), now);
    if (changes.length) {
      // An undo step of its own: else it is one with what was typed within half a second.
      const { undoManager } = shared as unknown as { undoManager?: { stopCapturing(): void } };
      undoManager?.stopCapturing();
      shared.transact(() => {
        for (const each of changes) {
          shared.updateSource(each.start, each.end, each.text);
        }
        // With the text, so that a step back takes both: then the document is stale, and says so.
        record(found.model, kept);
      });
      undoManager?.stopCapturing();
      const widget = this._panel.content.widgets[found.index];
      if ((widget as unknown as { rendered?: boolean }).rendered) {
        // Else it is rendered again after a second.
        widget.update();
      }
    } else {
      shared.transact(() => record(found.model, kept), false);
    }
  }

  /** Return how a document stands that nothing waits for. */
  private _standing(cell: string, cells: Map<string, string>): DocumentState {
    const rests = restsOn(find(this._panel, cell)?.model);
    if (rests === null) {
      return 'new';
    }
    if (this._declined.has(cell)) {
      return 'stale';
    }
    let known = this._known.get(cell);
    if (!known) {
      // As it was written, or as the notebook was opened.
      known = cells;
      this._known.set(cell, known);
    }
    const same = (id: string) => cells.has(id) && cells.get(id) === (known.get(id) ?? cells.get(id));
    return rests.every(id => !id || same(id)) ? 'current' : 'stale';
  }

  private _show(): void {
    if (this._disposed) {
      return;
    }
    const found: IDocument[] = [];
    const cells = steps(this._panel);
    for (const each of markdown(this._panel)) {
      const name = title(each.source);
      if (name !== null) {
        const proposed = this._proposed.get(each.id)?.source ?? null;
        const state: DocumentState =
          proposed !== null
            ? 'proposal'
            : this._waiting.has(each.id)
              ? 'waiting'
              : this._standing(each.id, cells);
        const last = this._steps.get(each.id) ?? null;
        found.push({ cell: each.id, title: name, state, proposed, source: each.source, last });
      }
    }
    this._list = found;
    this._marks.show(found);
    this._changed.emit();
  }

  private _marks: Marks;
  private _waiting = new Map<string, IUpdate>();
  private _proposed = new Map<string, IUpdate>();
  private _last = new Map<string, IUpdate>();
  private _steps = new Map<string, IStep>();
  /** Of each document what of an update was taken back or dismissed. */
  private _declined = new Map<string, string>();
  /** Of each document the code cells as they were when it was written, by their ids. */
  private _known = new Map<string, Map<string, string>>();
  private _list: readonly IDocument[] = [];
  private _lookTimer = 0;
  private _leftTimer = 0;
  private _disposed = false;
  private _changed = new Signal<this, void>(this);
  private _asked = new Signal<this, string>(this);
}

/** Return what of a document is ours: what stands between our two lines, else all of it. */
function ours(source: string): string {
  const begin = source.indexOf(BEGIN);
  const end = source.indexOf(END, begin);
  return begin >= 0 && end >= 0 ? source.slice(begin, end) : source;
}

/** Return what each code cell does, by its id: without comments of a line's length and blanks. */
function steps(panel: NotebookPanel): Map<string, string> {
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
function restsOn(model: ICellModel | undefined): string[] | null {
  const rests: unknown = model && recorded(model)?.rests_on;
  if (!Array.isArray(rests)) {
    return null;
  }
  return rests.map(each => (typeof each?.cell === 'string' ? each.cell : ''));
}

/** Return what the cell's metadata says that its text rests on, null where they say nothing. */
function recorded(model: ICellModel): IRecord | null {
  const held = model.getMetadata('ipymemory') as { doc?: IRecord } | null | undefined;
  return held?.doc ?? null;
}

/** Keep in the cell's metadata what its text rests on; the same again is no change. */
function record(model: ICellModel, record: IRecord | null): void {
  if (record === null) {
    return;
  }
  const held: JSONValue | undefined = model.getMetadata('ipymemory');
  const ours = JSONExt.isObject(held ?? null) ? (held as JSONObject) : {};
  const before = ours.doc as Partial<IRecord> | null | undefined;
  const same =
    before?.file === record.file &&
    before.version === record.version &&
    JSONExt.deepEqual(before.rests_on ?? [], record.rests_on);
  if (!same) {
    model.setMetadata('ipymemory', { ...ours, doc: record });
  }
}
