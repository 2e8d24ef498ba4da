/** What became of the updates of living documents: taken, taken back, or not wanted at all. */

import { IStep } from './document';
import { IUpdate } from './protocol';
import { ours } from './records';
import { Send } from './texts';

export class Taken {
  constructor(private _send: Send) {}

  /** Return the newest update that was put into a cell, null where none was or it was not wanted. */
  last(cell: string): IUpdate | null {
    return this._last.get(cell) ?? null;
  }

  /** Return what the last update changed, null where none came or it was taken back by a button. */
  step(cell: string): IStep | null {
    return this._steps.get(cell) ?? null;
  }

  /** Whether something of a document was taken back or dismissed since its last update. */
  declined(cell: string): boolean {
    return this._declined.has(cell);
  }

  /** Return whether an update says again what somebody did not want; another one is a new start. */
  refused(update: IUpdate): boolean {
    if (update.asked === 'again') {
      this._declined.delete(update.cell);
    }
    if (this._declined.get(update.cell) === ours(update.source)) {
      // Made from what they wrote since, it says again what they did not want.
      return true;
    }
    this._declined.delete(update.cell);
    return false;
  }

  /** Note that an update was put into its cell; `step` is null where that changed no text. */
  written(update: IUpdate, step: IStep | null): void {
    this._last.set(update.cell, update);
    if (step) {
      this._steps.set(update.cell, step);
    }
  }

  /** Note that an update was taken back out of its cell, and tell the kernel. */
  back(cell: string, step: IStep): void {
    this._steps.delete(cell);
    this.no(cell, step.after, step.job);
  }

  /** Note that somebody does not want a text, and tell the kernel. */
  no(cell: string, source: string, job: string): void {
    this._declined.set(cell, ours(source));
    this._last.delete(cell);
    void this._send('dismissed', { cell, job });
  }

  /** Take in what a cell says now: an update may be undone there by its own keys, or made again. */
  seen(cell: string, source: string): void {
    const step = this._steps.get(cell);
    const declined = this._declined.has(cell);
    if (step && source === step.before && !declined) {
      this.no(cell, step.after, step.job);
    } else if (step && source === step.after && declined) {
      this._declined.delete(cell);
      void this._send('accepted', { cell, job: step.job });
    }
  }

  private _last = new Map<string, IUpdate>();
  private _steps = new Map<string, IStep>();
  /** Of each document what of an update was taken back or dismissed. */
  private _declined = new Map<string, string>();
}
