/** What the page of JupyterLab and Notebook gets: a link for each notebook, a panel, a status. */

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { Signal } from '@lumino/signaling';
import { register } from './dream-output';
import { Link } from './link';
import { Current, MemoryPanel, MemoryStatus, icon } from './panel';

const PLUGIN = 'ipymemory:plugin';
const SHOW = 'ipymemory:show';

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Session notes beside the notebook, and documents that keep themselves true.',
  autoStart: true,
  requires: [INotebookTracker, IRenderMimeRegistry],
  optional: [ISettingRegistry, IStatusBar, ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    rendermime: IRenderMimeRegistry,
    registry: ISettingRegistry | null,
    statusBar: IStatusBar | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ) => {
    const current = new Current();
    const panel = new MemoryPanel(current, rendermime);
    app.shell.add(panel, 'right', { rank: 900, type: 'ipymemory' });
    restorer?.add(panel, panel.id);
    // Notebook 7.3 would hide a panel that is shown already.
    const show = () => (panel.isVisible ? panel.activate() : app.shell.activateById(panel.id));
    app.commands.addCommand(SHOW, { label: 'Show Memory Panel', icon, execute: show });
    palette?.addItem({ command: SHOW, category: 'Memory' });
    statusBar?.registerStatusItem('ipymemory:status', {
      item: new MemoryStatus(current, show),
      align: 'left',
      rank: 50
    });

    let autoLoad = false;
    const settled = (async () => {
      const settings = await registry?.load(PLUGIN);
      const read = () => {
        autoLoad = settings?.get('autoLoad').composite === true;
      };
      settings?.changed.connect(read);
      read();
    })().catch(error => console.warn('ipymemory: its settings were not read', error));

    const links = new WeakMap<NotebookPanel, Link>();
    const added = new Signal<object, Link>({});
    register(rendermime, {
      added,
      find: node => {
        const notebook = tracker.find(each => each.node.contains(node));
        return (notebook && links.get(notebook)) ?? null;
      }
    });
    const add = async (notebook: NotebookPanel) => {
      await settled;
      if (notebook.isDisposed || links.has(notebook)) {
        return;
      }
      const link = new Link(notebook, () => autoLoad);
      links.set(notebook, link);
      added.emit(link);
      link.documents.asked.connect((_, cell) => panel.point(cell, show));
      if (tracker.currentWidget === notebook) {
        current.link = link;
      }
    };
    tracker.forEach(each => void add(each));
    tracker.widgetAdded.connect((_, each) => void add(each));
    tracker.currentChanged.connect((_, each) => {
      current.link = (each && links.get(each)) ?? null;
    });
  }
};

export default plugin;
