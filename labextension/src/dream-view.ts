/** The part of the panel that shows a dream: memories tidying themselves, in the open. */

import { Dream, IState } from './dream';
import { element } from './elements';

const STEPS: Record<string, string> = {
  orient: 'looks at what there is',
  gather: 'gathers what is new',
  consolidate: 'brings together what belongs together',
  prune: 'puts the files in place'
};

const ENDED: Record<string, string> = {
  done: 'The memories were tidied',
  killed: 'The dream was ended, and the memories are as they were',
  failed: 'The dream failed',
  dead: 'The dream died with its process; what it left is put right before the next one',
  locked: 'Another dream holds the memories',
  refused: 'The memories were not tidied'
};

/** Seconds between two questions how a dream stands that runs. */
const ASK = 3;

export class DreamView {
  constructor() {
    this.node = element('section', 'ipymemory-dream');
    this.node.setAttribute('aria-label', 'Dream');
    this._told = element('p', '');
    this._told.setAttribute('role', 'status');
    this._count = element('p', 'ipymemory-quiet');
    this._kill = element('button', '', 'End the dream') as HTMLButtonElement;
    this._kill.type = 'button';
    this._kill.title = 'The memories stay as they were';
    // Not disabled while the dream ends: that would take the focus from a keyboard.
    this._kill.addEventListener('click', () => {
      if (!this._dream?.ending) {
        void this._dream?.kill();
      }
    });
    this._turns = element('ul', 'ipymemory-turns');
    this._turns.setAttribute('aria-label', 'What the dream says');
    this._files = element('div', '');
    this.node.append(
      element('h2', '', 'Dream'),
      this._told,
      this._count,
      this._kill,
      this._turns,
      this._files
    );
    this.node.hidden = true;
  }

  readonly node: HTMLElement;

  /** Show a dream as it stands; where there was none, nothing. */
  show(dream: Dream | null): void {
    this._dream = dream;
    const state = dream?.state ?? null;
    this.node.hidden = state === null;
    if (!dream || !state) {
      this._tick(false);
      return;
    }
    this.node.dataset.status = state.status;
    put(this._told, told(state, dream.ending));
    put(this._count, counted(state, dream.doing));
    const focused = this._kill === document.activeElement;
    this._kill.setAttribute('aria-disabled', String(dream.ending));
    if (focused && !dream.running) {
      // Before the button goes, so that a keyboard is not thrown back to the top.
      this._told.tabIndex = -1;
      this._told.focus();
    }
    this._kill.hidden = !dream.running;
    this._list(dream);
    this._tick(dream.running);
  }

  private _list(dream: Dream): void {
    const key = JSON.stringify([dream.turns, dream.files.length, dream.files[dream.files.length - 1]]);
    if (key === this._listed) {
      return;
    }
    this._listed = key;
    this._turns.replaceChildren(...dream.turns.map(each => element('li', '', each)));
    const open = this._files.querySelector('details')?.open ?? false;
    this._files.replaceChildren();
    if (dream.files.length) {
      const more = element('details', '') as HTMLDetailsElement;
      more.open = open;
      more.append(element('summary', '', `Files changed (${dream.files.length})`));
      for (const each of dream.files) {
        const diff = element('div', 'ipymemory-diff', each.diff);
        diff.tabIndex = 0;
        diff.setAttribute('role', 'group');
        diff.setAttribute('aria-label', `What changed in ${each.name}`);
        more.append(element('p', 'ipymemory-quiet', each.name), diff);
      }
      this._files.append(more);
    }
  }

  /** Let the time go on while it runs. */
  private _tick(running: boolean): void {
    if (running && !this._timer) {
      this._timer = window.setInterval(() => {
        if (this.node.isConnected && this._dream?.running) {
          if (++this._ticks % ASK === 0) {
            void this._dream.ask();
          }
          this.show(this._dream);
        } else {
          this._tick(false);
        }
      }, 1000);
    } else if (!running && this._timer) {
      clearInterval(this._timer);
      this._timer = 0;
    }
  }

  private _dream: Dream | null = null;
  private _told: HTMLElement;
  private _count: HTMLElement;
  private _kill: HTMLButtonElement;
  private _turns: HTMLElement;
  private _files: HTMLElement;
  private _listed = '';
  private _timer = 0;
  private _ticks = 0;
}

function told(state: IState, ending: boolean): string {
  if (ending) {
    return 'The dream ends.';
  }
  if (state.status === 'running') {
    return `A dream tidies the memories: it ${STEPS[state.step] ?? 'begins'}.`;
  }
  const end = ENDED[state.status] ?? `The dream ended: ${state.status}`;
  if (state.status === 'done') {
    const what = state.done.length ? state.done.join(', ') : 'there was nothing to tidy';
    const back = state.run ? ` %memory undo ${state.run.slice(0, 16)} takes all of it back.` : '';
    return `${end}: ${what}.${back}`;
  }
  return state.error ? `${end}. ${state.error}` : `${end}.`;
}

function counted(state: IState, doing: string): string {
  const seconds =
    state.status === 'running'
      ? Math.max(0, Math.round((Date.now() - state.started) / 1000))
      : Math.round(state.seconds);
  const found = [
    doing,
    some(state.memories, 'memory', 'memories'),
    state.sessions ? `${some(state.sessions, 'session', 'sessions')} since the last` : '',
    some(state.files, 'file', 'files') && `${some(state.files, 'file', 'files')} written`,
    state.tokens ? `${state.tokens.toLocaleString()} tokens` : '',
    state.usd ? `${state.usd.toFixed(4)} $` : '',
    `${seconds} s`
  ];
  return found.filter(each => each).join(' · ');
}

function some(count: number, one: string, more: string): string {
  return count ? `${count.toLocaleString()} ${count === 1 ? one : more}` : '';
}

function put(node: HTMLElement, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}
