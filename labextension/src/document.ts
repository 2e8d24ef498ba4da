/** What is said of a living document: how it stands, and what its last update changed. */

import { IRecord } from './protocol';

/** `elsewhere`: it came with the notebook and nobody accepted it yet; `opened`: it was written before this page was, and nobody has compared it with the cells yet. */
export type DocumentState =
  | 'new'
  | 'opened'
  | 'current'
  | 'stale'
  | 'elsewhere'
  | 'updating'
  | 'waiting'
  | 'proposal'
  | 'long';

/** A living document as the panel shows it. */
export interface IDocument {
  readonly cell: string;
  readonly title: string;
  readonly state: DocumentState;
  /** Why it is stale, a clause each, as far as that is known. */
  readonly why: readonly string[];
  /** What the model that writes it is doing, in a few words, nothing where it is not known. */
  readonly doing: string;
  /** The text that waits for a yes, null where none does. */
  readonly proposed: string | null;
  readonly source: string;
  /** What the last update changed, null where none came or it was taken back. */
  readonly last: IStep | null;
}

/** A cell's text before and after an update. */
export interface IStep {
  readonly before: string;
  readonly after: string;
  /** What the text before rested on, null where that was not kept. */
  readonly record: IRecord | null;
  /** Whose update it was. */
  readonly job: string;
}
