/** The small mark beside a living document, on its cell and not in its text. */

import { NotebookPanel } from '@jupyterlab/notebook';
import { IDocument } from './document';

/** The word on the mark, and what is said of the document's state. */
const WORDS: Record<IDocument['state'], [string, string]> = {
  new: ['living', 'not written yet'],
  opened: [
    'living',
    'written earlier; whether it is still true is known once ipymemory is loaded in the kernel'
  ],
  current: ['living', 'up to date'],
  stale: ['stale', 'its cells have changed since it was written; it follows when cells have run'],
  elsewhere: ['waits', 'waits for you to accept it'],
  updating: ['updating', 'a new text of it is being written'],
  waiting: ['waits', 'an update waits until you leave this cell'],
  proposal: ['proposal', 'a proposed text waits for your yes or no'],
  long: [
    'too long',
    'longer than the 256 thousand characters that are kept up to date. Split it, or take pictures out of its text'
  ]
};

/** Return a document's state as a sentence of its own. */
export function words(state: IDocument['state']): string {
  const [, long] = WORDS[state];
  return `${long[0].toUpperCase()}${long.slice(1)}.`;
}

export class Marks {
  /** `pressed` is told the cell whose mark was pressed. */
  constructor(
    private _panel: NotebookPanel,
    private _pressed: (cell: string) => void
  ) {}

  /** Put a mark on each of these cells, and on no other. */
  show(documents: readonly IDocument[]): void {
    const left = new Map(this._marks);
    for (const each of documents) {
      const widget = this._panel.content.widgets.find(cell => cell.model.id === each.cell);
      if (!widget) {
        continue;
      }
      left.delete(each.cell);
      const mark = this._marks.get(each.cell) ?? this._new(each.cell);
      const [short, long] = WORDS[each.state];
      if (mark.dataset.state !== each.state) {
        mark.dataset.state = each.state;
        mark.textContent = short;
        mark.title = `Living document, ${long}. Show it in the memory panel.`;
        mark.setAttribute('aria-label', mark.title);
      }
      if (mark.parentElement !== widget.node) {
        widget.node.appendChild(mark);
      }
    }
    left.forEach((mark, cell) => {
      mark.remove();
      this._marks.delete(cell);
    });
  }

  dispose(): void {
    this._marks.forEach(each => each.remove());
    this._marks.clear();
  }

  private _new(cell: string): HTMLButtonElement {
    const mark = document.createElement('button');
    mark.type = 'button';
    mark.className = 'ipymemory-mark';
    mark.addEventListener('click', event => {
      event.stopPropagation();
      this._pressed(cell);
    });
    // A key pressed here is no shortcut of the notebook's.
    mark.dataset.lmSuppressShortcuts = 'true';
    this._marks.set(cell, mark);
    return mark;
  }

  private _marks = new Map<string, HTMLButtonElement>();
}
