/**
 * New texts for living documents that are not in their cells yet: held back until somebody leaves
 * the cell, until they say yes, or while another page of the notebook is the one to write.
 */

import { NotebookPanel } from '@jupyterlab/notebook';
import { IUpdate } from './protocol';
import { find } from './texts';

/** Milliseconds between looks for a page that was to write and is gone. */
const LOST = 2000;

/** Milliseconds after which such a page is known to be there: a lost one is after half a minute. */
const MOST_HELD = 40000;

export class Held {
  /** `leads` says whether this page writes in a cell; `take` has it take an update after all. */
  constructor(
    private _panel: NotebookPanel,
    private _leads: (cell: string) => boolean,
    private _take: (update: IUpdate) => void
  ) {}

  /** Those that wait until somebody leaves the cell, by their cells; of each the newest. */
  readonly waiting = new Map<string, IUpdate>();

  /** Those that wait for a yes or no, by their cells. */
  readonly proposed = new Map<string, IUpdate>();

  dispose(): void {
    clearTimeout(this._timer);
  }

  /** Leave an update to another page, and write it where that is gone meanwhile. */
  elsewhere(update: IUpdate): void {
    this.waiting.delete(update.cell);
    const text = find(this._panel, update.cell)?.model.sharedModel.getSource() ?? '';
    this._elsewhere.set(update.cell, { update, text, since: Date.now() });
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => this._missed(), LOST);
  }

  /** Take in that an update is this page's: it waits until nobody writes in its cell. */
  wait(update: IUpdate): void {
    this._elsewhere.delete(update.cell);
    this.waiting.set(update.cell, update);
  }

  /** Return what is proposed for a cell that says `source`, null for nothing that it lacks. */
  proposal(cell: string, source: string): IUpdate | null {
    if (this.proposed.get(cell)?.source === source) {
      // Another page of this notebook took it.
      this.proposed.delete(cell);
    }
    return this.proposed.get(cell) ?? null;
  }

  /** Write what another page was to write, where that is gone and the text still stands so. */
  private _missed(): void {
    this._elsewhere.forEach((each, cell) => {
      const found = find(this._panel, cell);
      const same = found?.model.sharedModel.getSource() === each.text;
      if (!same || Date.now() - each.since > MOST_HELD) {
        this._elsewhere.delete(cell);
      } else if (this._leads(cell)) {
        this._take(each.update);
      }
    });
    if (this._elsewhere.size) {
      this._timer = window.setTimeout(() => this._missed(), LOST);
    }
  }

  /** What another page writes, with the text here when it was heard, and when that was. */
  private _elsewhere = new Map<string, { update: IUpdate; text: string; since: number }>();
  private _timer = 0;
}
