// The language of the page: Chinese or English, whichever the browser lists first.

import { filled } from "./elements.js";
import * as chinese from "./strings/zh.js";
import * as english from "./strings/en.js";

const LANGUAGES = { en: english, zh: chinese };
const wished = navigator.languages.map((name) => name.slice(0, 2).toLowerCase());
export const language = wished.find((name) => name in LANGUAGES) ?? "en";

// Sentences of the page by name; those with values are functions.
export const words = LANGUAGES[language].words;

// A sentence of the pictures, which are written in English, in this language.
export function say(sentence, values) {
  const { pictures = {}, patterns = [] } = LANGUAGES[language];
  const found = pictures[sentence];
  if (found !== undefined) return filled(found, values);
  const [pattern, other] = patterns.find(([one]) => one.test(sentence)) ?? [];
  return filled(pattern ? sentence.replace(pattern, other) : sentence, values);
}

export function number(value, digits = 0) {
  return value.toLocaleString(language, { maximumFractionDigits: digits });
}
