/**
 * The living documents of one notebook: cells that begin `# MAGIC DOC: title`.
 *
 * New text from the kernel is put into the cell as an undo step of its own. A cell that somebody
 * is writing in is left until they leave it; then the newest update counts. What they changed
 * meanwhile is merged by lines, and where both changed the same ones theirs stays and the update
 * is kept as a proposal.
 */

import { NotebookPanel } from '@jupyterlab/notebook';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { Marks } from './marks';
import { edits, merge, title } from './merge';
import { IRecord, IStanding, IUpdate, MOST_CELL } from './protocol';
import { NOTHING, ours, record, recorded, steps } from './records';
import { Standing } from './standing';
import { Send, editing, find, markdown } from './texts';
import { Together } from './together';

/** Milliseconds between leaving a cell and the update, so that its own change comes first. */
const LEFT = 30;

/** Milliseconds between looks for a page that was to write and is gone. */
const LOST = 2000;

/** Milliseconds after which such a page is known to be there: a lost one is after half a minute. */
const MOST_HELD = 40000;

/** Milliseconds of rest before the notebook is looked through for documents. */
const LOOK = 200;

/** Milliseconds after which a text that is being written is no more: a run ends after 3 minutes. */
const MOST_WORK = 240000;

/** `elsewhere`: it came with the notebook and nobody accepted it yet; `opened`: it was written before this page was, and nobody has compared it with the cells yet. */
export type DocumentState =
  | 'new'
  | 'opened'
  | 'current'
  | 'stale'
  | 'elsewhere'
  | 'updating'
  | 'waiting'
  | 'proposal'
  | 'long';

/** A living document as the panel shows it. */
export interface IDocument {
  readonly cell: string;
  readonly title: string;
  readonly state: DocumentState;
  /** Why it is stale, a clause each, as far as that is known. */
  readonly why: readonly string[];
  /** What the model that writes it is doing, in a few words, nothing where it is not known. */
  readonly doing: string;
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

type Found = NonNullable<ReturnType<typeof find>>;

export class Documents implements IDisposable {
  constructor(
    private _panel: NotebookPanel,
    private _send: Send
  ) {
    this._marks = new Marks(_panel, cell => this._asked.emit(cell));
    this._standing = new Standing(_panel);
    this._together = new Together(_panel);
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
    return this._list;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    clearTimeout(this._lookTimer);
    clearTimeout(this._leftTimer);
    clearTimeout(this._heldTimer);
    clearTimeout(this._workTimer);
    this._marks.dispose();
    Signal.clearData(this);
  }

  /** Take an update; of several for one cell only the newest is applied. */
  take(update: IUpdate): void {
    if (update.asked === 'back') {
      if (this._together.leads(update.cell)) {
        const { cell, job } = update;
        const record = this._steps.get(cell)?.record ?? null;
        this._back(cell, { before: update.source, after: update.base, record, job });
      }
      return;
    }
    if (update.asked === 'again') {
      this._declined.delete(update.cell);
    }
    if (this._declined.get(update.cell) === ours(update.source)) {
      // Made from what they wrote since, it says again what they did not want.
      return;
    }
    this._declined.delete(update.cell);
    if (update.propose) {
      const found = find(this._panel, update.cell);
      if (found && title(found.model.sharedModel.getSource()) !== null) {
        this._proposed.set(update.cell, update);
        this._show();
      }
      return;
    }
    this._tell();
    if (!this._together.leads(update.cell)) {
      // Another page of the same notebook writes it here too.
      this._waiting.delete(update.cell);
      const text = find(this._panel, update.cell)?.model.sharedModel.getSource() ?? '';
      this._held.set(update.cell, { update, text, since: Date.now() });
      clearTimeout(this._heldTimer);
      this._heldTimer = window.setTimeout(() => this._missed(), LOST);
      this._show();
      return;
    }
    this._held.delete(update.cell);
    this._waiting.set(update.cell, update);
    if (editing(this._panel) === update.cell) {
      this._show();
    } else {
      this._apply(update.cell);
    }
  }

  /** Take in which document a new text is being written of, nothing for none, and what is done. */
  updating(cell: string, doing = ''): void {
    clearTimeout(this._workTimer);
    if (cell) {
      // A worker that died says nothing any more.
      this._workTimer = window.setTimeout(() => this.updating(''), MOST_WORK);
    }
    if (cell !== this._updating || doing !== this._doing) {
      this._updating = cell;
      this._doing = doing;
      this._show();
    }
  }

  /** Take in that the file holds what is shown; return whether a document in it has a record. */
  saved(): boolean {
    this._standing.saved();
    return this._list.some(each => this._standing.has(each.cell));
  }

  /** Take in how documents stand in the file, as it was saved last. */
  stand(told: readonly IStanding[]): void {
    this._standing.told(told);
    this._show();
  }

  /** Be one of the pages that hear the kernel, or no longer. */
  linked(on: boolean): void {
    this._linked = on;
    this._tell();
  }

  /** Take in that somebody may have left a cell. */
  left(): void {
    this._tell();
    if (!this._waiting.size) {
      return;
    }
    clearTimeout(this._leftTimer);
    this._leftTimer = window.setTimeout(() => {
      const now = editing(this._panel);
      [...this._waiting.keys()].filter(cell => cell !== now).forEach(cell => this._apply(cell));
      this._tell();
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
      if (update.asked === 'back') {
        this._takenBack(found, update.source, cell, {
          before: update.source,
          after: update.base,
          record: null,
          job: update.job
        });
        this._show();
      } else {
        this._write(cell, update, update.source, 'accepted');
      }
    }
  }

  /** Forget the proposed text: somebody said no. */
  dismiss(cell: string): void {
    const update = this._proposed.get(cell);
    this._proposed.delete(cell);
    if (update && update.asked !== 'back') {
      this._no(cell, update.source, update.job);
    }
    this._show();
  }

  /** Take the last update of a document back, as a step of its own; what is theirs stays. */
  undo(cell: string): void {
    const step = this._steps.get(cell);
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
    this._waiting.delete(cell);
    if (now === null) {
      // They have written where the update did: the text before it waits for a yes.
      const { after: base, before: source, job } = step;
      this._proposed.set(cell, { cell, base, source, job, record: null, propose: true, asked: 'back' });
    } else {
      this._takenBack(found, now, cell, step);
    }
    this._show();
  }

  private _takenBack(found: Found, now: string, cell: string, step: IStep): void {
    this._steps.delete(cell);
    this._put(found, now, step.record ?? NOTHING);
    this._standing.undone(cell);
    this._no(cell, step.after, step.job);
  }

  /** Note that somebody does not want a text, and tell the kernel. */
  private _no(cell: string, source: string, job: string): void {
    this._declined.set(cell, ours(source));
    this._last.delete(cell);
    void this._send('dismissed', { cell, job });
  }

  /** Take in that an update was undone in the cell by its own keys, or made again. */
  private _stepped(cell: string, source: string): void {
    const step = this._steps.get(cell);
    const declined = this._declined.has(cell);
    if (step && source === step.before && !declined) {
      this._no(cell, step.after, step.job);
    } else if (step && source === step.after && declined) {
      this._declined.delete(cell);
      void this._send('accepted', { cell, job: step.job });
    }
  }

  /** Tell other pages where this one writes; a cell that is left is, until its update is in it. */
  private _tell(): void {
    const [waiting] = this._waiting.keys();
    this._together.tell(this._linked ? editing(this._panel) || waiting || '' : null);
  }

  /** Write what another page was to write, where that is gone and the text still stands so. */
  private _missed(): void {
    this._held.forEach((held, cell) => {
      const found = find(this._panel, cell);
      const same = found?.model.sharedModel.getSource() === held.text;
      if (!same || Date.now() - held.since > MOST_HELD) {
        this._held.delete(cell);
      } else if (this._together.leads(cell)) {
        this.take(held.update);
      }
    });
    if (this._held.size) {
      this._heldTimer = window.setTimeout(() => this._missed(), LOST);
    }
  }

  private _apply(cell: string): void {
    const update = this._waiting.get(cell);
    this._waiting.delete(cell);
    const found = find(this._panel, cell);
    if (!update || this._disposed) {
      return;
    }
    const mine = found?.model.sharedModel.getSource() ?? '';
    if (!found || title(mine) === null || mine.length > MOST_CELL) {
      // Removed, longer than what is compared while a page waits, or no longer a living document: not ours to write in.
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

  private _write(cell: string, update: IUpdate, now: string, outcome = 'applied'): void {
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
    this._standing.written(cell);
    void this._send(outcome, { cell, job: update.job });
    this._show();
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

  private _state(cell: string, source: string, cells: Map<string, string>): DocumentState {
    if (source.length > MOST_CELL) {
      return 'long';
    }
    if (this._proposed.get(cell)?.source === source) {
      // Another page of this notebook took it.
      this._proposed.delete(cell);
    }
    if (this._proposed.has(cell)) {
      return 'proposal';
    }
    if (this._waiting.has(cell)) {
      return 'waiting';
    }
    if (this._updating === cell) {
      return 'updating';
    }
    const standing = this._standing.of(cell, cells);
    const left = standing === 'new' || standing === 'elsewhere';
    return !left && this._declined.has(cell) ? 'stale' : standing;
  }

  private _why(cell: string, state: DocumentState): readonly string[] {
    const back = this._declined.has(cell) ? ['its last update was taken back'] : [];
    if (state === 'elsewhere') {
      return this._standing.why(cell);
    }
    return state === 'stale' ? [...back, ...this._standing.why(cell)] : [];
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
        this._stepped(each.id, each.source);
        const state = this._state(each.id, each.source, cells);
        const proposed = state === 'proposal' ? (this._proposed.get(each.id)?.source ?? null) : null;
        const taken = state === 'long' || this._declined.has(each.id);
        const last = taken ? null : (this._steps.get(each.id) ?? null);
        const why = this._why(each.id, state);
        const doing = state === 'updating' ? this._doing : '';
        const source = each.source;
        found.push({ cell: each.id, title: name, state, why, doing, proposed, source, last });
      }
    }
    this._list = found;
    this._marks.show(found);
    this._changed.emit();
  }

  private _marks: Marks;
  private _standing: Standing;
  private _together: Together;
  private _linked = false;
  private _waiting = new Map<string, IUpdate>();
  private _proposed = new Map<string, IUpdate>();
  /** What another page writes, with the text here when it was heard, and when that was. */
  private _held = new Map<string, { update: IUpdate; text: string; since: number }>();
  private _heldTimer = 0;
  private _last = new Map<string, IUpdate>();
  private _steps = new Map<string, IStep>();
  /** Of each document what of an update was taken back or dismissed. */
  private _declined = new Map<string, string>();
  private _updating = '';
  private _doing = '';
  private _workTimer = 0;
  private _list: readonly IDocument[] = [];
  private _lookTimer = 0;
  private _leftTimer = 0;
  private _disposed = false;
  private _changed = new Signal<this, void>(this);
  private _asked = new Signal<this, string>(this);
}
