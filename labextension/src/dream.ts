/**
 * The dream of one notebook's session: how it stands, and what it does while it does it.
 *
 * The kernel tells counts, and beside them words that are shown while they come. They live in
 * this page alone: nothing here is saved with the notebook.
 */

import { JSONObject, JSONValue } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { text } from './protocol';
import { Send } from './texts';

/** Turns and files that are shown, the newest. */
const MOST_TURNS = 5;
const MOST_FILES = 50;

/** Files of a plan that are shown, as many as the kernel tells. */
const MOST_PLANNED = 200;

/** Kinds of work that a dream counts, with the words for them. */
const COUNTED: readonly [string, string][] = [
  ['merged', 'merged'],
  ['rewritten', 'rewritten'],
  ['removed', 'removed'],
  ['dated', 'dated'],
  ['marked', 'marked'],
  ['relinked', 'relinked'],
  ['asked', 'asked'],
  ['left_out', 'left alone'],
  ['not_removed', 'not removed']
];

export interface IState {
  readonly status: string;
  readonly phase: string;
  readonly step: string;
  readonly started: number;
  readonly seconds: number;
  readonly sessions: number;
  /** Of these sessions those that were looked through, null where none is to be. */
  readonly reviewed: number | null;
  readonly files: number;
  readonly turns: number;
  readonly calls: number;
  readonly memories: number;
  readonly tokens: number;
  readonly usd: number;
  readonly run: string;
  readonly error: string;
  /** What was done, a few words each. */
  readonly done: readonly string[];
}

export interface IFile {
  readonly name: string;
  readonly diff: string;
  /** Whether it goes, since another one says what it says. */
  readonly gone: boolean;
}

export class Dream implements IDisposable {
  constructor(private _send: Send) {}

  /** Emitted when anything changed that is shown. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** How it stands, null where there was none. */
  get state(): IState | null {
    return this._state;
  }

  /** Which dream it is, nothing where there was none. */
  get id(): string {
    return this._id;
  }

  get running(): boolean {
    return this._state?.status === 'running';
  }

  /** What it is doing, in a few words. */
  get doing(): string {
    return this.running ? this._doing : '';
  }

  /** What the model said in its last turns, and how many tools it called in each. */
  get turns(): readonly string[] {
    return this._turns;
  }

  /** The files it has written, with what changed; of a plan that waits, those it would write. */
  get files(): readonly IFile[] {
    return this.waiting ? this._plan : this._files;
  }

  /** Whether it waits for a yes. */
  get waiting(): boolean {
    return this._state?.status === 'waiting';
  }

  /** Why the last thing that was asked of it was not done, or nothing. */
  get notice(): string {
    return this._notice;
  }

  /** Whether it was told to end and has not yet. */
  get ending(): boolean {
    return this.running && this._ending;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    Signal.clearData(this);
  }

  /** Begin with what the kernel knows of the last dream, nothing without a kernel. */
  begin(state: JSONValue | undefined): void {
    this._forget();
    this._id = '';
    this._state = null;
    this._read(state);
    this._changed.emit();
  }

  /** Take in a message about a dream. */
  take(message: JSONObject): void {
    this._read(message.state);
    const turn = object(message.turn);
    if (turn) {
      const calls = number(turn.calls);
      const made = calls ? `${calls.toLocaleString()} tool ${calls === 1 ? 'call' : 'calls'}` : '';
      const said = [text(turn.text, 2000).trim(), made].filter(each => each).join(' · ');
      this._turns = said ? [...this._turns, said].slice(-MOST_TURNS) : this._turns;
    }
    const file = object(message.file);
    if (file) {
      this._files = [...this._files, fileOf(file)].slice(-MOST_FILES);
    }
    const doing = object(message.doing);
    if (doing) {
      this._doing = text(doing.text, 100);
    }
    if (typeof message.notice === 'string') {
      this._notice = text(message.notice, 500);
      this._ending = false;
    }
    this._changed.emit();
  }

  /** End the dream that runs. */
  async kill(): Promise<void> {
    this._ending = true;
    const reply = await this._press('dream-kill');
    if (reply?.killed !== true) {
      this._ending = false;
      await this.ask();
    }
  }

  /** Do what waits for a yes, exactly as it is shown. */
  async accept(): Promise<void> {
    await this._press('dream-accept');
  }

  /** Drop what waits for a yes. */
  async dismiss(): Promise<void> {
    await this._press('dream-dismiss');
  }

  /** Take the dream back. */
  async undo(): Promise<void> {
    await this._press('dream-undo');
  }

  /** Ask how it stands: it may be another process that dreams, of which nobody else tells. */
  async ask(): Promise<void> {
    const reply = await this._send('command', { name: 'dream' });
    if (reply && !this._disposed) {
      this.take(reply);
    }
  }

  /** Send what a button means; where it is refused, say why. */
  private async _press(name: string): Promise<JSONObject | null> {
    this._notice = '';
    this._changed.emit();
    const reply = await this._send('command', { name, dream: this._id });
    if (!this._disposed) {
      this._notice = !reply
        ? 'The kernel cannot be reached.'
        : reply.type === 'refused'
          ? text(reply.text, 500)
          : '';
      this._read(reply?.state);
      this._changed.emit();
    }
    return reply;
  }

  /** Get the files of the plan that waits, with what would change. */
  private async _look(id: string): Promise<void> {
    const reply = await this._send('command', { name: 'dream-plan', dream: id });
    const files = reply?.files;
    if (Array.isArray(files) && id === this._id && !this._disposed) {
      this._plan = files
        .slice(0, MOST_PLANNED)
        .map(each => object(each))
        .filter(each => each !== null)
        .map(fileOf);
      this._changed.emit();
    }
  }

  private _forget(): void {
    this._turns = [];
    this._files = [];
    this._plan = [];
    this._planned = false;
    this._notice = '';
    this._doing = '';
    this._ending = false;
  }

  private _read(value: JSONValue | undefined): void {
    const told = object(value);
    const status = told && text(told.status, 50);
    if (!told || !status) {
      return;
    }
    const id = text(told.id, 100);
    if (id && id !== this._id) {
      this._id = id;
      this._state = null;
      this._forget();
    }
    const counts = object(told.counts) ?? {};
    const before = this._state;
    const began = Date.parse(text(told.started, 50));
    this._state = {
      status,
      phase: text(told.phase, 50) || (before?.phase ?? ''),
      step: text(told.step, 50) || (before?.step ?? ''),
      started: Number.isNaN(began) ? (before?.started ?? 0) : began,
      seconds: number(told.seconds),
      sessions: number(told.sessions) || (before?.sessions ?? 0),
      reviewed: typeof told.reviewed === 'number' ? told.reviewed : (before?.reviewed ?? null),
      files: number(told.files) || (before?.files ?? 0),
      turns: number(told.turns) || (before?.turns ?? 0),
      calls: number(told.calls) || (before?.calls ?? 0),
      memories: number(told.memories) || number(counts.memories) || (before?.memories ?? 0),
      tokens: number(told.tokens) || (before?.tokens ?? 0),
      usd: number(told.usd) || (before?.usd ?? 0),
      run: text(told.run, 100) || (before?.run ?? ''),
      error: text(told.error, 500),
      done: COUNTED.filter(([key]) => number(counts[key])).map(
        ([key, word]) => `${number(counts[key]).toLocaleString()} ${word}`
      )
    };
    if (this.waiting && !this._planned) {
      this._planned = true;
      void this._look(this._id);
    }
  }

  private _state: IState | null = null;
  private _id = '';
  private _doing = '';
  private _turns: readonly string[] = [];
  private _files: readonly IFile[] = [];
  private _plan: readonly IFile[] = [];
  private _planned = false;
  private _notice = '';
  private _ending = false;
  private _disposed = false;
  private _changed = new Signal<this, void>(this);
}

function object(value: JSONValue | undefined): JSONObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
}

function fileOf(told: JSONObject): IFile {
  const { file, diff, gone } = told;
  return { name: text(file, 200), diff: text(diff, 5000), gone: gone === true };
}

function number(value: JSONValue | undefined): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
