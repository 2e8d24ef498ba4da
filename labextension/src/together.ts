/**
 * Several pages on one notebook, as with jupyter-collaboration: which of them writes.
 *
 * The kernel tells every page the same update, and a notebook that is shared takes both when two
 * put in the same words at once: they would stand there twice. So one page writes: the one in
 * which somebody is writing in that cell, since it waits until they leave, else the one that has
 * heard the kernel longest: one that joins knows those before it sooner than they know it. The
 * pages know each other by what the notebook's own sharing tells (awareness). Two pages that share
 * nothing do not see each other, and each writes in its own copy.
 */

import { NotebookPanel } from '@jupyterlab/notebook';

/** The name under which a page tells the others of itself. */
const FIELD = 'ipymemory';

interface IAware {
  readonly clientID: number;
  getStates(): Map<number, Record<string, unknown>>;
  setLocalStateField(name: string, value: unknown): void;
}

export class Together {
  constructor(private _panel: NotebookPanel) {}

  /** Tell the others which cell is written in here; null where this page hears no kernel. */
  tell(editing: string | null): void {
    if (editing !== this._told) {
      if (editing !== null && this._told === null) {
        this._since = Date.now();
      }
      this._told = editing;
      const state = editing === null ? null : { editing, since: this._since };
      this._aware()?.setLocalStateField(FIELD, state);
    }
  }

  /** Whether it is for this page to write in a cell. */
  leads(cell: string): boolean {
    const aware = this._aware();
    if (!aware) {
      return true;
    }
    const since = this._told === null ? Infinity : this._since;
    const own = { id: aware.clientID, editing: this._told ?? '', since };
    const pages = [own];
    aware.getStates().forEach((state, id) => {
      // Of any page, also of one that means harm: at worst nobody writes.
      const told = state?.[FIELD] as { editing?: unknown; since?: unknown } | null | undefined;
      if (id !== own.id && typeof told === 'object' && told !== null) {
        const { editing, since } = told;
        pages.push({
          id,
          editing: typeof editing === 'string' ? editing : '',
          since: typeof since === 'number' ? since : Infinity
        });
      }
    });
    const writing = pages.filter(each => each.editing === cell);
    const among = writing.length ? writing : pages;
    among.sort((one, two) => (one.since === two.since ? one.id - two.id : one.since - two.since));
    return among[0] === own;
  }

  private _aware(): IAware | null {
    const shared = this._panel.context.model?.sharedModel as unknown as { awareness?: IAware } | null;
    return shared?.awareness ?? null;
  }

  private _told: string | null = null;
  private _since = 0;
}
