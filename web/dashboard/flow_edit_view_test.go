package dashboard

import (
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/web"
)

// hostileDraft is a draft in which every text tries to be markup.
func hostileDraft(x string, who viewer) flowEditView {
	fields := []flows.FormField{}
	for _, kind := range []string{flows.FieldOfLine, flows.FieldOfText, flows.FieldOfNode, flows.FieldOfOne, flows.FieldOfNumber, flows.FieldOfLines, flows.FieldOfYAML} {
		fields = append(fields, flows.FormField{Key: x + kind, Kind: kind, Words: []string{x}, Value: x})
	}
	v := flowEditView{viewer: who, Base: x, Kinds: []string{x}, FlowProposal: web.FlowProposal{
		Flow: x, File: x, Version: x + "1", Text: x, Start: x,
		Diff:   []web.FlowDiffLine{{Mark: "+", Text: x}, {Mark: "-", Text: x}, {Mark: " ", Text: x}, {}},
		Faults: []web.FlowFault{{File: x, Line: 3, Key: "nodes." + x, Text: x, Near: x}},
		Forms:  []flows.Form{{Name: x, Kind: x, Line: 3, Fields: fields, Edges: []flows.FormEdge{{Path: []string{x}, To: x + "2"}}, Parts: []string{x}}, {Name: x + "2", Kind: x}},
	}}
	v.Targets = v.Nodes()
	v.Chosen = &v.Forms[0]
	v.Graph = drawDraft(&v)
	return v
}
