/** The side panel and the status item: what the session knows, while it learns it. */

import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { LabIcon } from '@jupyterlab/ui-components';
import { ISignal, Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { IDocument } from './document';
import { DreamView } from './dream-view';
import { element } from './elements';
import { Link } from './link';
import { words } from './marks';
import { compare } from './merge';
import { PACKAGE } from './protocol';

export const icon = new LabIcon({
  name: 'ipymemory:icon',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><path class="jp-icon3" fill="#616161" d="M5 3h11l3 3v15H5zm2 2v14h10V7h-3V5zm2 5h6v1.6H9zm0 3.4h6V15H9z"/></svg>'
});

/** The link of the notebook that is in front. */
export class Current {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get link(): Link | null {
    return this._link;
  }

  set link(link: Link | null) {
    if (link !== this._link) {
      this._link?.changed.disconnect(this._emit, this);
      this._link = link;
      link?.changed.connect(this._emit, this);
      this._emit();
    }
  }

  private _emit(): void {
    this._changed.emit();
  }

  private _link: Link | null = null;
  private _changed = new Signal<this, void>(this);
}

/** Return the state in a word for styles, in a few for the status bar, and as a sentence. */
export function told(link: Link | null): { state: string; short: string; long: string } {
  if (!link || link.isDisposed) {
    return { state: 'none', short: 'none', long: 'Open a notebook to see its notes.' };
  }
  const session = link.session;
  if (link.state === 'no kernel') {
    return { state: 'none', short: 'no kernel', long: 'This notebook has no kernel.' };
  }
  if (link.state === 'other version') {
    const long =
      'The kernel has another version of ipymemory than this page. Install the same for both and reload.';
    return { state: 'stopped', short: 'other version', long };
  }
  if (link.state === 'absent' || !session) {
    const long = 'ipymemory is not loaded in this kernel. Run %load_ext ipymemory in a cell.';
    return { state: 'absent', short: 'not loaded', long };
  }
  const engine = session.engine === 'extractive' ? 'the built-in engine' : `a model (${session.engine})`;
  if (session.paused) {
    const long = 'Recording is paused. %memory resume-recording goes on.';
    return { state: 'stopped', short: 'paused', long };
  }
  if (session.reason) {
    return { state: 'stopped', short: 'not recording', long: session.reason };
  }
  const long = `Recording in project ${session.project}; notes by ${engine}.`;
  if (session.version && session.version !== PACKAGE) {
    const other = `The kernel has ipymemory ${session.version} and this page ${PACKAGE}.`;
    return { state: 'other', short: 'recording', long: `${long} ${other} Install the same for both and reload.` };
  }
  return { state: 'linked', short: 'recording', long };
}

export class MemoryPanel extends Widget {
  constructor(
    private _current: Current,
    private _rendermime: IRenderMimeRegistry
  ) {
    super();
    this.id = 'ipymemory-panel';
    this.title.icon = icon;
    this.title.caption = 'Memory: session notes and living documents';
    this.addClass('ipymemory-panel');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'Memory');
    this._state = element('p', 'ipymemory-state');
    this._state.setAttribute('role', 'status');
    this._documents = element('ul', 'ipymemory-documents');
    this._documents.setAttribute('aria-label', 'Living documents');
    this._notes = element('div', 'ipymemory-notes');
    this._notes.tabIndex = 0;
    this._notes.setAttribute('role', 'region');
    this._notes.setAttribute('aria-label', 'Session notes');
    this.node.append(
      this._state,
      element('h2', '', 'Living documents'),
      this._documents,
      this._dream.node,
      element('h2', '', 'Session notes'),
      this._notes
    );
    _current.changed.connect(this._update, this);
    this._update();
  }

  /** Show the panel by `show`, with the focus on this document's line. */
  point(cell: string, show: () => void): void {
    this._wanted = cell;
    show();
    // Not every application activates a panel that is shown already.
    window.setTimeout(() => this._wanted && this.onActivateRequest(), 100);
  }

  protected override onActivateRequest(): void {
    if (!this._wanted || !this._point(this._wanted)) {
      this._notes.focus();
    }
    this._wanted = '';
  }

  private _point(cell: string): boolean {
    const line = `[data-cell="${CSS.escape(cell)}"] button`;
    const button = this._documents.querySelector<HTMLElement>(line);
    button?.scrollIntoView({ block: 'nearest' });
    button?.focus();
    return button !== null;
  }

  private _update(): void {
    const link = this._current.link;
    const { state, long } = told(link);
    if (this._state.textContent !== long || this._state.dataset.state !== state) {
      this._state.dataset.state = state;
      this._state.textContent = long;
    }
    this._showDocuments(link?.documents.list ?? []);
    this._dream.show(link?.dream ?? null);
    void this._showNotes(state === 'absent' || !link ? '' : link.notes);
  }

  private _showDocuments(list: readonly IDocument[]): void {
    // Of the text itself only what is compared with a proposal is shown.
    const shown = list.map(each => (each.proposed === null ? { ...each, source: '' } : each));
    const key = JSON.stringify([this._current.link?.panel.id, shown]);
    if (key === this._shown) {
      return;
    }
    this._shown = key;
    const before = document.activeElement?.closest<HTMLElement>('[data-cell]')?.dataset.cell;
    const within = this._documents.contains(document.activeElement);
    const items = list.map(each => this._document(each));
    if (!items.length) {
      const hint = 'None yet. A markdown cell becomes one by its first line: # MAGIC DOC: Title';
      items.push(element('li', 'ipymemory-quiet', hint));
    }
    this._documents.replaceChildren(...items);
    if (within && before) {
      this._point(before);
    }
  }

  private _document(each: IDocument): HTMLElement {
    const item = element('li', '');
    item.dataset.cell = each.cell;
    const name = element('button', 'ipymemory-link', each.title) as HTMLButtonElement;
    name.type = 'button';
    name.title = 'Go to this cell';
    name.addEventListener('click', () => this._go(each.cell));
    item.append(name, element('p', '', words(each.state)));
    if (each.doing) {
      item.append(element('p', 'ipymemory-quiet', `${each.doing} …`));
    }
    if (each.why.length) {
      const why = element('ul', 'ipymemory-why');
      const stale = each.state === 'stale';
      why.setAttribute(
        'aria-label',
        stale ? `Why ${each.title} is stale` : `What ${each.title} waits for`
      );
      why.append(...each.why.map(one => element('li', '', one)));
      item.append(why);
    }
    if (each.proposed !== null) {
      item.append(
        difference(each.source, each.proposed, `What the proposal would change in ${each.title}`),
        this._button('Use this text', `Use the proposed text of ${each.title}`, each, 'accept'),
        this._button('Dismiss', `Dismiss the proposed text of ${each.title}`, each, 'dismiss')
      );
    } else if (each.last) {
      const more = element('details', '') as HTMLDetailsElement;
      more.open = this._open.has(each.cell);
      more.addEventListener('toggle', () =>
        more.open ? this._open.add(each.cell) : this._open.delete(each.cell)
      );
      const label = `What the last update changed in ${each.title}`;
      more.append(
        element('summary', '', 'What changed'),
        difference(each.last.before, each.last.after, label),
        this._button('Undo update', `Take the last update of ${each.title} back`, each, 'undo')
      );
      item.append(more);
    }
    return item;
  }

  private _button(
    label: string,
    long: string,
    each: IDocument,
    what: 'accept' | 'dismiss' | 'undo'
  ): HTMLElement {
    const button = element('button', '', label) as HTMLButtonElement;
    button.type = 'button';
    button.setAttribute('aria-label', long);
    button.addEventListener('click', () => this._current.link?.documents[what](each.cell));
    return button;
  }

  private _go(cell: string): void {
    const notebook = this._current.link?.panel.content;
    const index = notebook?.widgets.findIndex(each => each.model.id === cell) ?? -1;
    if (notebook && index >= 0) {
      notebook.activeCellIndex = index;
      notebook.widgets[index].node.scrollIntoView({ block: 'nearest' });
      notebook.activate();
    }
  }

  private async _showNotes(notes: string): Promise<void> {
    const shown = brief(notes);
    if (shown === this._rendered) {
      return;
    }
    this._rendered = shown;
    if (!shown) {
      const hint = 'They write themselves a second after your cells come to rest.';
      this._notes.replaceChildren(element('p', 'ipymemory-quiet', hint));
      return;
    }
    const data = { 'text/markdown': shown };
    const renderer = this._rendermime.createRenderer('text/markdown');
    // Never trusted: Jupyter's sanitiser takes out whatever could run.
    await renderer.renderModel(this._rendermime.createModel({ data, trusted: false }));
    if (this._rendered === shown && !this.isDisposed) {
      this._notes.replaceChildren(renderer.node);
    }
  }

  private _state: HTMLElement;
  private _documents: HTMLElement;
  private _notes: HTMLElement;
  private _dream = new DreamView();
  private _wanted = '';
  private _open = new Set<string>();
  private _shown = '-';
  private _rendered = '-';
}

/** The state in the status bar; pressing it shows the panel. */
export class MemoryStatus extends Widget {
  constructor(
    private _current: Current,
    show: () => void
  ) {
    const button = document.createElement('button');
    super({ node: button });
    button.type = 'button';
    button.className = 'ipymemory-status jp-StatusBar-TextItem';
    button.addEventListener('click', show);
    _current.changed.connect(this._update, this);
    this._update();
  }

  private _update(): void {
    const { short, long } = told(this._current.link);
    this.node.textContent = `Memory: ${short}`;
    this.node.title = `${long} Show the memory panel.`;
  }
}

/** Return the notes without sections that hold nothing, and without what loads from elsewhere. */
export function brief(notes: string): string {
  const kept: string[] = [];
  let section: string[] = [];
  let fence = false;
  const close = () => {
    const body = section.slice(1).join('\n').trim();
    if (section.length && body) {
      kept.push(section[0], '', body, '');
    }
  };
  for (const line of notes.split('\n')) {
    if (/^ {0,3}(```|~~~)/.test(line)) {
      fence = !fence;
    }
    if (!fence && line.startsWith('# ')) {
      close();
      section = [`##${line}`];
    } else if (section.length && !(section.length === 1 && /^_.*_\s*$/.test(line))) {
      section.push(line);
    }
  }
  close();
  return kept.join('\n').replace(/!\[/g, '!\u200b[').replace(/<(?=[a-z/!])/gi, '<\u200b');
}

/** Return two texts compared line by line, reachable by the keyboard. */
function difference(before: string, after: string, label: string): HTMLElement {
  const diff = element('div', 'ipymemory-diff');
  diff.tabIndex = 0;
  diff.setAttribute('role', 'group');
  diff.setAttribute('aria-label', label);
  for (const line of compare(before, after)) {
    const kind = { same: 'span', gone: 'del', new: 'ins' }[line.kind];
    diff.append(element(kind, '', line.text + (line.kind === 'same' ? '\n' : '')));
  }
  return diff;
}
