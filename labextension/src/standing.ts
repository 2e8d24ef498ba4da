/**
 * Whether living documents still say what the cells do.
 *
 * A page cannot compare a record's hashes with its cells: they are of code whose secrets are
 * masked, and what masks them is the kernel's. So the kernel compares the saved notebook, and the
 * page notes which cells have changed since. Before a kernel has spoken a document is `opened`:
 * nobody knows.
 */

import { NotebookPanel } from '@jupyterlab/notebook';
import { IStanding } from './protocol';
import { recorded, restsOn, steps } from './records';
import { find } from './texts';

type Cells = ReadonlyMap<string, string>;

export class Standing {
  constructor(private _panel: NotebookPanel) {}

  /** Take in that the file holds what is shown. */
  saved(): void {
    this._saved = steps(this._panel);
  }

  /** Take in how documents stand in the file, as it was saved last. */
  told(all: readonly IStanding[]): void {
    this._unaccepted.clear();
    for (const each of all) {
      if (each.waits) {
        this._unaccepted.set(each.cell, each.stale);
        continue;
      }
      // The text here may be newer than the file: then another record is meant.
      if (each.updated && this._updated(each.cell) === each.updated) {
        this._told.set(each.cell, each);
        if (!each.stale.length) {
          this._known.set(each.cell, { updated: each.updated, cells: this._saved });
        }
      }
    }
  }

  /** Take in that a document was written just now. */
  written(cell: string): void {
    this._told.delete(cell);
    this._unaccepted.delete(cell);
    this._known.set(cell, { updated: this._updated(cell), cells: steps(this._panel) });
  }

  /** Take in that a document's last text was taken back. */
  undone(cell: string): void {
    this._told.delete(cell);
  }

  /** Whether the document was ever written, by its record. */
  has(cell: string): boolean {
    return restsOn(find(this._panel, cell)?.model) !== null;
  }

  /** Return how a document stands for which nothing is under way, `cells` the code as it is. */
  of(cell: string, cells: Cells): 'new' | 'opened' | 'current' | 'stale' | 'elsewhere' {
    if (this._unaccepted.has(cell)) {
      return 'elsewhere';
    }
    const rests = restsOn(find(this._panel, cell)?.model);
    if (rests === null) {
      return 'new';
    }
    const known = this._known.get(cell);
    if (this.why(cell).length || (known && known.updated !== this._updated(cell))) {
      // In the second case they took a step back: it says again what it said before.
      return 'stale';
    }
    const then = known?.cells ?? this._saved;
    const same = (id: string) => cells.has(id) && cells.get(id) === (then.get(id) ?? cells.get(id));
    if (!rests.every(id => !id || same(id))) {
      return 'stale';
    }
    return known ? 'current' : 'opened';
  }

  /** Return why the kernel says that a document is stale or left alone, nothing where it does not. */
  why(cell: string): readonly string[] {
    const waits = this._unaccepted.get(cell);
    if (waits) {
      return waits;
    }
    const told = this._told.get(cell);
    return told && told.updated === this._updated(cell) ? told.stale : [];
  }

  /** Return when a document's record was made, nothing where it has none. */
  private _updated(cell: string): string {
    const model = find(this._panel, cell)?.model;
    const updated: unknown = model && recorded(model)?.updated;
    return typeof updated === 'string' ? updated : '';
  }

  /** The code cells as the file has them, by their ids. */
  private _saved: Cells = new Map();
  /** Of each document the code cells with which it agreed, and its record's time. */
  private _known = new Map<string, { updated: string; cells: Cells }>();
  /** Those that came with the notebook and that nobody accepted yet, and what is said of them. */
  private _unaccepted = new Map<string, readonly string[]>();
  /** What the kernel says of each document in the file. */
  private _told = new Map<string, IStanding>();
}
