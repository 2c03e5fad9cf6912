/**
 * Markup as tagged templates, so that the page needs no compiler of its own.
 *
 * Owns: the binding of htm to preact. Never: a component.
 * Used by: app.ts.
 */
import htm from 'htm';
import { h, type VNode } from 'preact';

type Html = (strings: TemplateStringsArray, ...values: unknown[]) => VNode;

// biome-ignore lint/suspicious/noExplicitAny: htm's types do not know preact 11
export const html: Html = (htm as any).bind(h);
