/** What one notebook's page shares with its kernel: found, opened, lost, found again. */

import { NotebookPanel } from '@jupyterlab/notebook';
import { Kernel, KernelMessage } from '@jupyterlab/services';
import { JSONObject, UUID } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { Documents } from './documents';
import { Dream } from './dream';
import {
  ISession,
  PACKAGE,
  PUSH,
  RPC,
  VERSION,
  read,
  readSession,
  readStanding,
  readUpdate,
  text
} from './protocol';
import { Texts } from './texts';

/** Silent, binds no name, and leaves a kernel without the package as it is. */
const LOAD = `try:
    __import__('ipymemory.extension', fromlist=['load_quietly']).load_quietly(get_ipython())
except ImportError:
    pass`;

/** Milliseconds within which a kernel starts the thread that answers while a cell runs. */
const SUBSHELL = 2000;

const MOST_NOTES = 256 * 1024;

/** `absent`: there is a kernel, and ipymemory is not loaded in it. */
export type LinkState = 'no kernel' | 'absent' | 'linked' | 'other version';

/** One for each notebook that is open, for as long as it is. */
export class Link implements IDisposable {
  constructor(
    readonly panel: NotebookPanel,
    private _autoLoad: () => boolean
  ) {
    this.texts = new Texts(panel, (type, fields) => this.request(type, fields));
    this.documents = new Documents(panel, (type, fields) => this.request(type, fields));
    this.documents.changed.connect(() => this._changed.emit());
    this.dream = new Dream((type, fields) => this.request(type, fields));
    this.dream.changed.connect(() => this._changed.emit());
    const context = panel.sessionContext;
    context.kernelChanged.connect(this._onKernelChanged, this);
    context.statusChanged.connect(this._onStatus, this);
    panel.content.modelContentChanged.connect(this._onContent, this);
    panel.content.activeCellChanged.connect(this._onMoved, this);
    panel.content.stateChanged.connect(this._onMoved, this);
    panel.context.fileChanged.connect(this._onSaved, this);
    panel.disposed.connect(() => this.dispose());
    void context.ready.then(() => this._bind(context.session?.kernel ?? null));
  }

  readonly texts: Texts;
  readonly documents: Documents;
  readonly dream: Dream;

  /** Emitted when anything changed that is shown. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get state(): LinkState {
    return this._state;
  }

  /** What the kernel says of its session, while linked. */
  get session(): ISession | null {
    return this._session;
  }

  /** The session's notes as the kernel last told them. */
  get notes(): string {
    return this._notes;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    if (this._disposed) {
      return;
    }
    this._disposed = true;
    this.texts.stop();
    this.documents.dispose();
    this.dream.dispose();
    this._unbind();
    Signal.disconnectReceiver(this);
    Signal.clearData(this);
  }

  /** Send a message; resolves to its reply, or to null without a kernel to send it to. */
  request(type: string, fields: JSONObject = {}): Promise<JSONObject | null> {
    const rpc = this._rpc;
    if (!rpc || rpc.isDisposed) {
      return Promise.resolve(null);
    }
    const id = UUID.uuid4();
    return new Promise(resolve => {
      this._pending.set(id, resolve);
      rpc.send({ v: VERSION, type, id, ...fields });
    });
  }

  private _onKernelChanged(
    _: unknown,
    args: { newValue: Kernel.IKernelConnection | null }
  ): void {
    void this._bind(args.newValue);
  }

  private _onStatus(_: unknown, status: Kernel.Status): void {
    if (['restarting', 'autorestarting', 'dead', 'terminating'].includes(status)) {
      // JupyterLab disposes every comm here and calls no onClose.
      this._lose('absent');
      this._looked = false;
    } else if (status === 'idle' && !this._looked) {
      void this._look();
    }
  }

  private _onContent(): void {
    this.texts.changed();
    this.documents.look();
  }

  private _onSaved(): void {
    if (this.documents.saved() && this._state === 'linked') {
      void this.request('command', { name: 'documents' });
    }
  }

  private _onMoved(): void {
    this.texts.changed();
    this.documents.left();
  }

  private async _bind(kernel: Kernel.IKernelConnection | null): Promise<void> {
    if (kernel === this._kernel) {
      return;
    }
    this._unbind();
    this._kernel = kernel;
    this._looked = false;
    this._lose(kernel ? 'absent' : 'no kernel');
    if (kernel) {
      // Outlives restarts of this connection.
      kernel.registerCommTarget(PUSH, this._onPush);
      await kernel.info.catch(() => undefined);
      if (!this._looked) {
        await this._look();
      }
    }
  }

  private _unbind(): void {
    if (this._kernel && !this._kernel.isDisposed) {
      this._kernel.removeCommTarget(PUSH, this._onPush);
    }
    if (this._rpc && !this._rpc.isDisposed) {
      this._rpc.close();
    }
    this._kernel = null;
  }

  /** Look whether ipymemory is in the kernel: then it has a comm open. Runs nothing there. */
  private async _look(): Promise<void> {
    const kernel = this._kernel;
    if (!kernel || kernel.isDisposed || this._disposed) {
      return;
    }
    this._looked = true;
    try {
      const reply = await kernel.requestCommInfo({ target_name: PUSH });
      const { content } = reply;
      const there = content.status === 'ok' && Object.keys(content.comms).length > 0;
      if (kernel !== this._kernel || this._state === 'linked') {
        return;
      }
      if (there) {
        await this._open(kernel);
      } else if (this._autoLoad() && (await kernel.info).language_info.name === 'python') {
        kernel.requestExecute({
          code: LOAD,
          silent: true,
          store_history: false,
          allow_stdin: false,
          stop_on_error: false
        });
      }
    } catch {
      // The kernel went away meanwhile; its successor is looked at when it is idle.
      this._looked = false;
    }
  }

  private _onPush = (comm: Kernel.IComm, _message: KernelMessage.ICommOpenMsg): void => {
    comm.onMsg = message => this._hear(message.content.data as JSONObject);
    // Nothing is awaited in here: no message is processed before this returns.
    if ((!this._rpc || this._rpc.isDisposed) && this._kernel) {
      void this._open(this._kernel);
    }
  };

  private async _open(kernel: Kernel.IKernelConnection): Promise<void> {
    // A restart or another announcement may overtake this at each await: the newest goes on.
    const attempt = ++this._attempt;
    const rpc = kernel.createComm(RPC);
    rpc.onMsg = message => this._answered(message.content.data as JSONObject);
    rpc.onClose = () => {
      if (this._rpc === rpc) {
        this._lose('absent');
      }
    };
    // Without the kernel's second thread the comm would wait for the cell that runs. On a kernel
    // that has none the promise never settles.
    const able = kernel as unknown as { supportsSubshells?: boolean };
    const { subshellStarted } = rpc as unknown as { subshellStarted?: Promise<void> };
    if (subshellStarted && able.supportsSubshells) {
      const late = new Promise(resolve => setTimeout(resolve, SUBSHELL));
      await Promise.race([subshellStarted.catch(() => undefined), late]);
    }
    if (attempt !== this._attempt || kernel !== this._kernel || rpc.isDisposed) {
      return;
    }
    if (this._rpc && !this._rpc.isDisposed) {
      this._rpc.close();
    }
    this._rpc = rpc;
    rpc.open({});
    const reply = await this.request('hello', {
      frontend: 'jupyterlab',
      version: VERSION,
      package: PACKAGE,
      notebook: this.panel.context.path.slice(-400)
    });
    if (this._rpc !== rpc || !reply) {
      return;
    }
    if (reply.type !== 'welcome') {
      this._set('other version');
      return;
    }
    this._session = readSession(reply);
    this._notes = text(reply.notes, MOST_NOTES);
    this.dream.begin(reply.dream);
    this.documents.updating(text(reply.updating, 100));
    this._set('linked');
    this.documents.linked(true);
    this.texts.all();
  }

  private _answered(data: JSONObject): void {
    const reply = read(data);
    if (reply && typeof reply.id === 'string') {
      this._pending.get(reply.id)?.(reply);
      this._pending.delete(reply.id);
    }
  }

  private _hear(data: JSONObject): void {
    const message = read(data);
    if (message?.type === 'doc.update') {
      const update = readUpdate(message);
      if (update) {
        this.documents.take(update);
      }
    } else if (message?.type === 'doc.standing') {
      this.documents.stand(readStanding(message));
    } else if (message?.type === 'doc.updating') {
      this.documents.updating(text(message.cell, 100), text(message.doing, 100));
    } else if (message?.type === 'dream') {
      this.dream.take(message);
    } else if (message?.type === 'notes') {
      this._notes = text(message.text, MOST_NOTES);
      this._changed.emit();
    } else if (message?.type === 'status') {
      // Its version was said once, with the welcome.
      this._session = { ...readSession(message), version: this._session?.version ?? '' };
      this._changed.emit();
    }
  }

  private _lose(state: LinkState): void {
    this._attempt++;
    this._rpc = null;
    this._session = null;
    this._notes = '';
    this.dream.begin(undefined);
    this._pending.forEach(resolve => resolve(null));
    this._pending.clear();
    this.documents.linked(false);
    this.documents.updating('');
    this._set(state);
  }

  private _set(state: LinkState): void {
    this._state = state;
    this._changed.emit();
  }

  private _kernel: Kernel.IKernelConnection | null = null;
  private _rpc: Kernel.IComm | null = null;
  private _attempt = 0;
  private _looked = false;
  private _pending = new Map<string, (reply: JSONObject | null) => void>();
  private _state: LinkState = 'no kernel';
  private _session: ISession | null = null;
  private _notes = '';
  private _disposed = false;
  private _changed = new Signal<this, void>(this);
}
