/**
 * The output of a cell that began a dream, or asked how it stands.
 *
 * What is saved holds counts and their words in Markdown. As long as the page is linked to the
 * kernel that dreams, the view beside them shows the rest, and the buttons: it reads the link of
 * its notebook, never the file. Anywhere else, and once the kernel is gone, the Markdown stays.
 */

import { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { JSONObject, ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { ISignal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';
import { Dream } from './dream';
import { DreamView } from './dream-view';
import { Link } from './link';
import { text } from './protocol';

export const MIME = 'application/vnd.ipymemory.dream+json';

/** Finds the link of the notebook that a node stands in. */
export interface ILinks {
  find(node: HTMLElement): Link | null;
  readonly added: ISignal<unknown, Link>;
}

/** Have notebooks show dreams by `DreamOutput`. */
export function register(rendermime: IRenderMimeRegistry, links: ILinks): void {
  rendermime.addFactory(
    {
      // Its words are put in as text, and Markdown goes through Jupyter's sanitiser.
      safe: true,
      mimeTypes: [MIME],
      defaultRank: 10,
      createRenderer: () => new DreamOutput(links, rendermime)
    },
    10
  );
}

class DreamOutput extends Widget implements IRenderMime.IRenderer {
  constructor(
    private _links: ILinks,
    private _rendermime: IRenderMimeRegistry
  ) {
    super();
    this.addClass('ipymemory-output');
    this.layout = new PanelLayout();
    this.node.append(this._view.node);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._state = stateOf(model.data[MIME]);
    this._show();
    const markdown = model.data['text/markdown'];
    if (typeof markdown !== 'string' || markdown === this._said) {
      return;
    }
    this._said = markdown;
    const below = this._rendermime.createRenderer('text/markdown');
    const data = { 'text/markdown': markdown };
    await below.renderModel(this._rendermime.createModel({ data, trusted: false }));
    if (this.isDisposed || this._said !== markdown) {
      below.dispose();
      return;
    }
    this._below?.dispose();
    this._below = below;
    (this.layout as PanelLayout).addWidget(below);
    this._show();
  }

  override dispose(): void {
    this._unbind();
    super.dispose();
  }

  protected override onAfterAttach(): void {
    this._links.added.connect(this._bind, this);
    this._bind();
  }

  protected override onBeforeDetach(): void {
    this._unbind();
  }

  private _bind(): void {
    const link = this._links.find(this.node);
    if (link !== this._link) {
      this._link?.changed.disconnect(this._show, this);
      this._link = link;
      link?.changed.connect(this._show, this);
    }
    this._show();
  }

  private _unbind(): void {
    this._links.added.disconnect(this._bind, this);
    this._link?.changed.disconnect(this._show, this);
    this._link = null;
    this._view.stop();
  }

  private _show(): void {
    const dream = this._mine();
    const status = dream?.state?.status;
    // The view says more while there is something to see or to press, and it says what came since.
    const viewed = dream !== null && (dream.running || dream.waiting || status !== this._state?.status);
    this._view.show(dream, !viewed && this._below !== null);
    if (this._below) {
      this._below.node.hidden = viewed;
    }
  }

  /** Return the link's dream if it is the one that this output tells of. */
  private _mine(): Dream | null {
    const dream = this._link?.state === 'linked' ? this._link.dream : null;
    if (!dream?.state || !this._state) {
      return null;
    }
    const id = text(this._state.id, 100);
    // The cell knows which one it is a moment after the page does.
    return id ? (id === dream.id ? dream : null) : dream.running ? dream : null;
  }

  private _view = new DreamView(true);
  private _link: Link | null = null;
  private _state: JSONObject | null = null;
  private _said = '';
  private _below: IRenderMime.IRenderer | null = null;
}

function stateOf(value: ReadonlyPartialJSONValue | undefined): JSONObject | null {
  const { v, state } = (value ?? {}) as { v?: unknown; state?: unknown };
  const found = typeof state === 'object' && state !== null && !Array.isArray(state);
  return v === 1 && found ? (state as JSONObject) : null;
}
