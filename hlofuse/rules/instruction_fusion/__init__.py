"""Rules of the fusion driver all targets share (`xla/service/instruction_fusion.cc`): codes IF…"""
