#!/bin/sh
# Build the paper with whatever LaTeX is there: build.sh NUMBERS_TEX PDF
set -eu
folder=$(cd "$(dirname "$1")" && pwd)
pdf=$2
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/main.tex" "$here/dice.sty" "$folder/"
cd "$folder"
if command -v latexmk >/dev/null; then
  latexmk -pdf -interaction=nonstopmode -halt-on-error main.tex
elif command -v tectonic >/dev/null; then
  tectonic main.tex
elif command -v pdflatex >/dev/null; then
  pdflatex -interaction=nonstopmode -halt-on-error main.tex
  pdflatex -interaction=nonstopmode -halt-on-error main.tex
else
  echo "paper: no latexmk, tectonic or pdflatex on this machine; install one, or run with --software-deployment-method apptainer to use the tex image." >&2
  exit 2
fi
cd - >/dev/null
mv "$folder/main.pdf" "$pdf"
