/** The living documents of one notebook as they are shown: in the panel, and by marks on cells. */

import { NotebookPanel } from '@jupyterlab/notebook';
import { DocumentState, IDocument } from './document';
import { Held } from './held';
import { Marks } from './marks';
import { title } from './merge';
import { MOST_CELL } from './protocol';
import { steps } from './records';
import { Standing } from './standing';
import { Taken } from './taken';
import { markdown } from './texts';

/** Milliseconds of rest before the notebook is looked through for documents. */
const LOOK = 200;

/** Milliseconds after which a text that is being written is no more: a run ends after 3 minutes. */
const MOST_WORK = 240000;

export class Shown {
  /** `changed` is called when a document or its state did; `pressed` with a mark's cell. */
  constructor(
    private _panel: NotebookPanel,
    private _held: Held,
    private _taken: Taken,
    private _standing: Standing,
    private _changed: () => void,
    pressed: (cell: string) => void
  ) {
    this._marks = new Marks(_panel, pressed);
  }

  /** The documents in order, as they were last seen. */
  get list(): readonly IDocument[] {
    return this._list;
  }

  dispose(): void {
    this._disposed = true;
    clearTimeout(this._lookTimer);
    clearTimeout(this._workTimer);
    this._marks.dispose();
  }

  /** Look through the notebook for documents, after a moment of rest. */
  look(): void {
    clearTimeout(this._lookTimer);
    this._lookTimer = window.setTimeout(() => this.now(), LOOK);
  }

  /** Look through the notebook for documents, and show them. */
  now(): void {
    if (this._disposed) {
      return;
    }
    const found: IDocument[] = [];
    const cells = steps(this._panel);
    for (const each of markdown(this._panel)) {
      const name = title(each.source);
      if (name !== null) {
        found.push(this._document(each.id, name, each.source, cells));
      }
    }
    this._list = found;
    this._marks.show(found);
    this._changed();
  }

  /** Take in which document a new text is being written of, nothing for none, and what is done. */
  updating(cell: string, doing: string): void {
    clearTimeout(this._workTimer);
    if (cell) {
      // A worker that died says nothing any more.
      this._workTimer = window.setTimeout(() => this.updating('', ''), MOST_WORK);
    }
    if (cell !== this._updating || doing !== this._doing) {
      this._updating = cell;
      this._doing = doing;
      this.now();
    }
  }

  private _document(
    cell: string,
    title: string,
    source: string,
    cells: Map<string, string>
  ): IDocument {
    this._taken.seen(cell, source);
    const state = this._state(cell, source, cells);
    const proposed = state === 'proposal' ? (this._held.proposal(cell, source)?.source ?? null) : null;
    const taken = state === 'long' || this._taken.declined(cell);
    const last = taken ? null : this._taken.step(cell);
    const why = this._why(cell, state);
    const doing = state === 'updating' ? this._doing : '';
    return { cell, title, state, why, doing, proposed, source, last };
  }

  private _state(cell: string, source: string, cells: Map<string, string>): DocumentState {
    if (source.length > MOST_CELL) {
      return 'long';
    }
    if (this._held.proposal(cell, source)) {
      return 'proposal';
    }
    if (this._held.waiting.has(cell)) {
      return 'waiting';
    }
    if (this._updating === cell) {
      return 'updating';
    }
    const standing = this._standing.of(cell, cells);
    const left = standing === 'new' || standing === 'elsewhere';
    return !left && this._taken.declined(cell) ? 'stale' : standing;
  }

  private _why(cell: string, state: DocumentState): readonly string[] {
    const back = this._taken.declined(cell) ? ['its last update was taken back'] : [];
    if (state === 'elsewhere') {
      return this._standing.why(cell);
    }
    return state === 'stale' ? [...back, ...this._standing.why(cell)] : [];
  }

  private _marks: Marks;
  private _list: readonly IDocument[] = [];
  private _updating = '';
  private _doing = '';
  private _lookTimer = 0;
  private _workTimer = 0;
  private _disposed = false;
}
