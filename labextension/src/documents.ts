/**
 * The living documents of one notebook: cells that begin `# MAGIC DOC: title`.
 *
 * New text from the kernel is put into the cell as an undo step of its own. A cell that somebody
 * is writing in is left until they leave it; then the newest update counts. What they changed
 * meanwhile is merged by lines, and where both changed the same ones theirs stays and the update
 * is kept as a proposal. What is not in its cell yet is held in `held`, what became of the others
 * is in `taken`, and `shown` says of each document how it stands.
 */

import { NotebookPanel } from '@jupyterlab/notebook';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { IDocument, IStep } from './document';
import { Held } from './held';
import { edits, merge, title } from './merge';
import { IRecord, IStanding, IUpdate, MOST_CELL } from './protocol';
import { NOTHING, record, recorded } from './records';
import { Shown } from './shown';
import { Standing } from './standing';
import { Taken } from './taken';
import { Send, editing, find } from './texts';
import { Together } from './together';

/** Milliseconds between leaving a cell and the update, so that its own change comes first. */
const LEFT = 30;

type Found = NonNullable<ReturnType<typeof find>>;

export class Documents implements IDisposable {
  constructor(
    private _panel: NotebookPanel,
    private _send: Send
  ) {
    this._together = new Together(_panel);
    this._standing = new Standing(_panel);
    this._taken = new Taken(_send);
    this._held = new Held(
      _panel,
      cell => this._together.leads(cell),
      update => this.take(update)
    );
    this._shown = new Shown(
      _panel,
      this._held,
      this._taken,
      this._standing,
      () => this._changed.emit(),
      cell => this._asked.emit(cell)
    );
    void _panel.context.ready.then(() => {
      this._standing.saved();
      this.look();
    });
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
    return this._shown.list;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    clearTimeout(this._leftTimer);
    this._held.dispose();
    this._shown.dispose();
    Signal.clearData(this);
  }

  /** Take an update; of several for one cell only the newest is applied. */
  take(update: IUpdate): void {
    if (update.asked === 'back') {
      if (this._together.leads(update.cell)) {
        const { cell, job } = update;
        const record = this._taken.step(cell)?.record ?? null;
        this._back(cell, { before: update.source, after: update.base, record, job });
      }
      return;
    }
    if (this._taken.refused(update)) {
      return;
    }
    if (update.propose) {
      const found = find(this._panel, update.cell);
      if (found && title(found.model.sharedModel.getSource()) !== null) {
        this._held.proposed.set(update.cell, update);
        this._shown.now();
      }
      return;
    }
    this._tell();
    if (!this._together.leads(update.cell)) {
      // Another page of the same notebook writes it here too.
      this._held.elsewhere(update);
      this._shown.now();
      return;
    }
    this._held.wait(update);
    if (editing(this._panel) === update.cell) {
      this._shown.now();
    } else {
      this._apply(update.cell);
    }
  }

  /** Take in which document a new text is being written of, nothing for none, and what is done. */
  updating(cell: string, doing = ''): void {
    this._shown.updating(cell, doing);
  }

  /** Take in that the file holds what is shown; return whether a document in it has a record. */
  saved(): boolean {
    this._standing.saved();
    return this.list.some(each => this._standing.has(each.cell));
  }

  /** Take in how documents stand in the file, as it was saved last. */
  stand(told: readonly IStanding[]): void {
    this._standing.told(told);
    this._shown.now();
  }

  /** Be one of the pages that hear the kernel, or no longer. */
  linked(on: boolean): void {
    this._linked = on;
    this._tell();
  }

  /** Take in that somebody may have left a cell. */
  left(): void {
    this._tell();
    if (!this._held.waiting.size) {
      return;
    }
    clearTimeout(this._leftTimer);
    this._leftTimer = window.setTimeout(() => {
      const now = editing(this._panel);
      const waiting = [...this._held.waiting.keys()];
      waiting.filter(cell => cell !== now).forEach(cell => this._apply(cell));
      this._tell();
    }, LEFT);
  }

  /** Look through the notebook for documents, after a moment of rest. */
  look(): void {
    this._shown.look();
  }

  /** Put the proposed text into its cell: somebody said yes. */
  accept(cell: string): void {
    const update = this._held.proposed.get(cell);
    const found = find(this._panel, cell);
    if (update && found) {
      this._held.proposed.delete(cell);
      if (update.asked === 'back') {
        this._takenBack(found, update.source, cell, {
          before: update.source,
          after: update.base,
          record: null,
          job: update.job
        });
        this._shown.now();
      } else {
        this._write(cell, update, update.source, 'accepted');
      }
    }
  }

  /** Forget the proposed text: somebody said no. */
  dismiss(cell: string): void {
    const update = this._held.proposed.get(cell);
    this._held.proposed.delete(cell);
    if (update && update.asked !== 'back') {
      this._taken.no(cell, update.source, update.job);
    }
    this._shown.now();
  }

  /** Take the last update of a document back, as a step of its own; what is theirs stays. */
  undo(cell: string): void {
    const step = this._taken.step(cell);
    if (step) {
      this._back(cell, step);
    }
  }

  private _back(cell: string, step: IStep): void {
    const found = find(this._panel, cell);
    const now = found && merge(found.model.sharedModel.getSource(), step.after, step.before);
    if (!found) {
      return;
    }
    this._held.waiting.delete(cell);
    if (now === null) {
      // They have written where the update did: the text before it waits for a yes.
      const { after: base, before: source, job } = step;
      this._held.proposed.set(cell, {
        cell,
        base,
        source,
        job,
        record: null,
        propose: true,
        asked: 'back'
      });
    } else {
      this._takenBack(found, now, cell, step);
    }
    this._shown.now();
  }

  private _takenBack(found: Found, now: string, cell: string, step: IStep): void {
    this._put(found, now, step.record ?? NOTHING);
    this._standing.undone(cell);
    this._taken.back(cell, step);
  }

  /** Tell other pages where this one writes; a cell that is left is, until its update is in it. */
  private _tell(): void {
    const [waiting] = this._held.waiting.keys();
    this._together.tell(this._linked ? editing(this._panel) || waiting || '' : null);
  }

  private _apply(cell: string): void {
    const update = this._held.waiting.get(cell);
    this._held.waiting.delete(cell);
    const found = find(this._panel, cell);
    if (!update || this._disposed) {
      return;
    }
    const mine = found?.model.sharedModel.getSource() ?? '';
    if (!found || title(mine) === null || mine.length > MOST_CELL) {
      // Removed, longer than what is compared while a page waits, or no longer a living document: not ours to write in.
      void this._send('conflict', { cell, job: update.job });
      this._shown.now();
      return;
    }
    // Made from the same text as the one before, it does not know that one: what counts as the
    // person's is what differs from that.
    const last = this._taken.last(cell);
    const base = last && last.base === update.base ? last.source : update.base;
    const now = merge(mine, base, update.source);
    if (now === null) {
      this._held.proposed.set(cell, update);
      void this._send('conflict', { cell, job: update.job });
      this._shown.now();
    } else {
      this._write(cell, update, now);
    }
  }

  private _write(cell: string, update: IUpdate, now: string, outcome = 'applied'): void {
    const found = find(this._panel, cell);
    if (!found) {
      return;
    }
    this._held.proposed.delete(cell);
    const before = found.model.sharedModel.getSource();
    const step = { before, after: now, record: recorded(found.model), job: update.job };
    this._taken.written(update, now === before ? null : step);
    this._put(found, now, update.record);
    if (update.record || !this._standing.has(cell)) {
      // A text without a record says nothing of the cells as they are.
      this._standing.written(cell);
    }
    void this._send(outcome, { cell, job: update.job });
    this._shown.now();
  }

  /** Put a text into a cell, and what it rests on into its metadata. */
  private _put(found: Found, now: string, kept: IRecord | null): void {
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

  private _together: Together;
  private _standing: Standing;
  private _taken: Taken;
  private _held: Held;
  private _shown: Shown;
  private _linked = false;
  private _leftTimer = 0;
  private _disposed = false;
  private _changed = new Signal<this, void>(this);
  private _asked = new Signal<this, string>(this);
}
