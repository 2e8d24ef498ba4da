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

/** Milliseconds of rest before the notebook is looked through for documents. */
const LOOK = 200;

export type DocumentState = 'current' | 'waiting' | 'proposal';

/** A living document as the panel shows it. */
export interface IDocument {
  readonly cell: string;
  readonly title: string;
  readonly state: DocumentState;
  /** The text that waits for a yes, null where none does. */
  readonly proposed: string | null;
  readonly source: string;
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
    this._proposed.delete(cell);
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
        record(found.model, update.record);
      });
      undoManager?.stopCapturing();
      const widget = this._panel.content.widgets[found.index];
      if ((widget as unknown as { rendered?: boolean }).rendered) {
        // Else it is rendered again after a second.
        widget.update();
      }
    } else {
      shared.transact(() => record(found.model, update.record), false);
    }
    void this._send('applied', { cell, job: update.job });
    this._show();
  }

  private _show(): void {
    if (this._disposed) {
      return;
    }
    const found: IDocument[] = [];
    for (const each of markdown(this._panel)) {
      const name = title(each.source);
      if (name !== null) {
        const proposed = this._proposed.get(each.id)?.source ?? null;
        const state: DocumentState =
          proposed !== null ? 'proposal' : this._waiting.has(each.id) ? 'waiting' : 'current';
        found.push({ cell: each.id, title: name, state, proposed, source: each.source });
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
  private _list: readonly IDocument[] = [];
  private _lookTimer = 0;
  private _leftTimer = 0;
  private _disposed = false;
  private _changed = new Signal<this, void>(this);
  private _asked = new Signal<this, string>(this);
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
